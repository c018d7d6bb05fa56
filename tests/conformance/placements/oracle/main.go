// Oracle places pods with a whole kube-scheduler: its queue, cache, informers, default profile and plugins. Only the API
// server is missing; a fake client takes its place. Each line of the input is a question in JSON, and each line of the
// output its answer, in the same order.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

const (
	bufferSize = 1 << 20
	// atOnce is the number of schedulers that run at the same time: each mostly waits for its informers.
	atOnce = 16
)

// question is one case.
type question struct {
	Nodes []*v1.Node `json:"nodes"`
	// Pods have a node, and Queue is placed.
	Pods        []*v1.Pod                   `json:"pods"`
	Queue       []*v1.Pod                   `json:"queue"`
	Namespaces  []*v1.Namespace             `json:"namespaces"`
	Services    []*v1.Service               `json:"services"`
	ReplicaSets []*appsv1.ReplicaSet        `json:"replicaSets"`
	Claims      []*v1.PersistentVolumeClaim `json:"claims"`
	Volumes     []*v1.PersistentVolume      `json:"volumes"`
}

type answer struct {
	steps []step
	err   error
}

func main() {
	klog.SetLogger(logr.Discard())
	if err := answerAll(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// answerAll answers every line; answers are flushed when no further question is waiting.
func answerAll(in io.Reader, out io.Writer) error {
	answers := make(chan chan answer, atOnce)
	go func() {
		defer close(answers)
		reader := bufio.NewReaderSize(in, bufferSize)
		for {
			line, err := reader.ReadBytes('\n')
			if err == io.EOF {
				return
			}
			pending := make(chan answer, 1)
			answers <- pending
			if err != nil {
				pending <- answer{err: err}
				return
			}
			go func() { pending <- answerOne(line) }()
		}
	}()
	encoder := json.NewEncoder(out)
	for pending := range answers {
		answer := <-pending
		if answer.err != nil {
			return answer.err
		}
		if err := encoder.Encode(map[string]any{"steps": answer.steps}); err != nil {
			return err
		}
	}
	return nil
}

func answerOne(line []byte) answer {
	var query question
	if err := json.Unmarshal(line, &query); err != nil {
		return answer{err: err}
	}
	steps, err := schedule(context.Background(), query)
	if err != nil {
		return answer{err: fmt.Errorf("%w in %.200s", err, line)}
	}
	return answer{steps: steps}
}
