// Oracle answers questions with the real code of the Kubernetes version that it is linked with. Each line of the input
// is a question in JSON, and each line of the output its answer, in the same order.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/go-logr/logr"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

const bufferSize = 1 << 20

func main() {
	gates := flag.String("feature-gates", "", "feature gates to set, such as A=true,B=false")
	flag.Parse()
	klog.SetLogger(logr.Discard())
	// The plugins' parallelizer counts goroutines.
	metrics.Register()
	if err := utilfeature.DefaultMutableFeatureGate.Set(*gates); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if err := answerAll(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// answerAll answers every line; answers are flushed when no further question is waiting.
func answerAll(in io.Reader, out io.Writer) error {
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
		response, err := answer(line)
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

func answer(line []byte) (any, error) {
	var query question
	if err := json.Unmarshal(line, &query); err != nil {
		return nil, err
	}
	switch query.Kind {
	case "create":
		return createPod(query)
	case "update":
		return updatePod(query)
	case "template":
		return createDeployment(query)
	case "filter":
		return filterSpread(query)
	case "scores":
		return scoreSpread(query)
	case "affinity":
		return filterAffinity(query)
	case "resources":
		return fitPod(query)
	case "placing":
		return placePods(query)
	}
	return nil, fmt.Errorf("unknown kind %q", query.Kind)
}
