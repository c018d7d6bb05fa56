// Oracle answers questions with the real code of the descheduler that it is linked with: one JSON object a line in, one
// out, in the same order. It evicts nothing: what would be evicted is only noted.
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
	// Obstacles maps each pod that the default evictor would not evict to what it logs about it.
	Obstacles map[string][]string `json:"obstacles"`
	// Counts maps each constraint (pod/index) of each pod that is listed to what is counted for it; nil if nothing is.
	Counts map[string]*plugin.Counted `json:"counts"`
	// Evicts lists the namespaces of which pods would be evicted if it did not matter where else they fit.
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
	return answerAll(os.Stdin, os.Stdout, func(asked question) (answer, error) {
		return answerOne(asked, byDefault, withoutNodeFit, logs)
	})
}

// answerAll answers every line; what is answered is passed on as soon as no further question is waiting.
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
		var asked question
		if err := json.Unmarshal(line, &asked); err != nil {
			return fmt.Errorf("%w in %s", err, line)
		}
		found, err := answerOne(asked)
		if err != nil {
			return fmt.Errorf("%w in %s", err, line)
		}
		if err := encoder.Encode(found); err != nil {
			return err
		}
		if reader.Buffered() == 0 {
			if err := writer.Flush(); err != nil {
				return err
			}
		}
	}
}

func answerOne(asked question, byDefault, withoutNodeFit *descheduler, logs *obstacleSink) (answer, error) {
	found := answer{Obstacles: map[string][]string{}, Counts: map[string]*plugin.Counted{}, Evicts: []string{}}
	for _, pod := range asked.Pods {
		logs.checks = nil
		if !byDefault.Filter(pod) {
			found.Obstacles[pod.Name] = logs.checks
		}
	}
	ready, err := readyNodes(asked.Nodes)
	if err != nil {
		return found, err
	}
	if err := byDefault.balance(ready, asked.Pods); err != nil {
		return found, err
	}
	listed, err := podutil.ListPodsOnNodes(ready, byDefault.GetPodsAssignedToNodeFunc(), byDefault.Filter)
	if err != nil {
		return found, err
	}
	for _, pod := range listed {
		for index, constraint := range pod.Spec.TopologySpreadConstraints {
			found.Counts[fmt.Sprintf("%s/%d", pod.Name, index)] = plugin.Observed(pod, constraint)
		}
	}
	if err := withoutNodeFit.balance(ready, asked.Pods); err != nil {
		return found, err
	}
	found.Evicts = withoutNodeFit.namespaces()
	return found, nil
}

func readyNodes(nodes []*v1.Node) ([]*v1.Node, error) {
	items := make([]any, 0, len(nodes))
	for _, one := range nodes {
		items = append(items, one)
	}
	return node.ReadyNodesFromInterfaces(items)
}
