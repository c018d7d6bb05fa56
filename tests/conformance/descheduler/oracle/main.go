// Oracle answers questions with the real code of the descheduler that it is linked with. Each line of the input is a
// question in JSON, and each line of the output its answer, in the same order. Evictions are only recorded.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/descheduler/pkg/descheduler/node"
	podutil "sigs.k8s.io/descheduler/pkg/descheduler/pod"
	plugin "sigs.k8s.io/descheduler/pkg/framework/plugins/removepodsviolatingtopologyspreadconstraint"
)

const bufferSize = 1 << 20

type question struct {
	Nodes []*v1.Node `json:"nodes"`
	Pods  []*v1.Pod  `json:"pods"`
}

type answer struct {
	// Obstacles maps each pod that the default evictor would not evict to the checks that it logs.
	Obstacles map[string][]string `json:"obstacles"`
	// Counts maps each constraint (pod/index) of each listed pod to its count, or to nil if it is not counted.
	Counts map[string]*plugin.Counted `json:"counts"`
	// Evicts lists the namespaces whose pods would be evicted if they did not have to fit elsewhere.
	Evicts []string `json:"evicts"`
}

func main() {
	klog.SetLogger(logr.Discard())
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	logs := &obstacleSink{}
	ctx := klog.NewContext(context.Background(), logr.New(logs))
	byDefault, err := newDescheduler(ctx, "defaults")
	if err != nil {
		return err
	}
	withoutNodeFit, err := newDescheduler(ctx, "without-node-fit")
	if err != nil {
		return err
	}
	return answerAll(os.Stdin, os.Stdout, func(query question) (answer, error) {
		return answerOne(query, byDefault, withoutNodeFit, logs)
	})
}

// answerAll answers every line; answers are flushed when no further question is waiting.
func answerAll(in io.Reader, out io.Writer, answerOne func(question) (answer, error)) error {
	reader := bufio.NewReaderSize(in, bufferSize)
	writer := bufio.NewWriterSize(out, bufferSize)
	encoder := json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	for {
		line, err := reader.ReadBytes('\n')
		if err == io.EOF {
			return writer.Flush()
		}
		if err != nil {
			return err
		}
		var query question
		if err := json.Unmarshal(line, &query); err != nil {
			return fmt.Errorf("%w in %s", err, line)
		}
		response, err := answerOne(query)
		if err != nil {
			return fmt.Errorf("%w in %s", err, line)
		}
		if err := encoder.Encode(response); err != nil {
			return err
		}
		if reader.Buffered() == 0 {
			if err := writer.Flush(); err != nil {
				return err
			}
		}
	}
}

func answerOne(query question, byDefault, withoutNodeFit *descheduler, logs *obstacleSink) (answer, error) {
	response := answer{Obstacles: map[string][]string{}, Counts: map[string]*plugin.Counted{}, Evicts: []string{}}
	for _, pod := range query.Pods {
		logs.checks = nil
		if !byDefault.Filter(pod) {
			response.Obstacles[pod.Name] = logs.checks
		}
	}
	ready, err := readyNodes(query.Nodes)
	if err != nil {
		return response, err
	}
	if err := byDefault.balance(ready, query.Pods); err != nil {
		return response, err
	}
	listed, err := podutil.ListPodsOnNodes(ready, byDefault.GetPodsAssignedToNodeFunc(), byDefault.Filter)
	if err != nil {
		return response, err
	}
	for _, pod := range listed {
		for index, constraint := range pod.Spec.TopologySpreadConstraints {
			response.Counts[fmt.Sprintf("%s/%d", pod.Name, index)] = plugin.Observed(pod, constraint)
		}
	}
	if err := withoutNodeFit.balance(ready, query.Pods); err != nil {
		return response, err
	}
	response.Evicts = withoutNodeFit.namespaces()
	return response, nil
}

func readyNodes(nodes []*v1.Node) ([]*v1.Node, error) {
	items := make([]any, 0, len(nodes))
	for _, each := range nodes {
		items = append(items, each)
	}
	return node.ReadyNodesFromInterfaces(items)
}
