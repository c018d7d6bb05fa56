package main

import (
	"strings"

	"github.com/go-logr/logr"
)

// obstacleSink stores the checks that the default evictor logs for the last pod that it would not evict.
type obstacleSink struct{ checks []string }

func (s *obstacleSink) Init(logr.RuntimeInfo)          {}
func (s *obstacleSink) Enabled(int) bool               { return true }
func (s *obstacleSink) Error(error, string, ...any)    {}
func (s *obstacleSink) WithValues(...any) logr.LogSink { return s }
func (s *obstacleSink) WithName(string) logr.LogSink   { return s }
func (s *obstacleSink) Info(_ int, _ string, keysAndValues ...any) {
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		if keysAndValues[i] == "checks" {
			// An aggregate of several errors is written [one, two].
			text := strings.Trim(keysAndValues[i+1].(string), "[]")
			s.checks = strings.Split(text, ", ")
		}
	}
}
