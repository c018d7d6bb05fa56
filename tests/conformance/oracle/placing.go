package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeunschedulable"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/tainttoleration"
)

// placement asks which nodes would take one more pod like a pod of the cluster.
type placement struct {
	Pod string `json:"pod"`
	// Without are pods that are gone.
	Without []string `json:"without"`
	// With are the nodes of further such pods.
	With []string `json:"with"`
	// Scored asks how the nodes that take it are ranked.
	Scored bool `json:"scored"`
}

// placed maps every node's name to the first plugin that refuses it, "" is success; Scores are of the others.
type placed struct {
	Nodes  map[string]string `json:"nodes"`
	Scores *scored           `json:"scores,omitempty"`
}

func placePods(asked question) (any, error) {
	answers := []placed{}
	for _, placement := range asked.Placements {
		found, err := placeNext(asked, placement)
		if err != nil {
			return nil, err
		}
		answers = append(answers, found)
	}
	return map[string]any{"placed": answers}, nil
}

func placeNext(asked question, placement placement) (placed, error) {
	pod := likeness(asked.Pods, placement.Pod)
	pods := remaining(asked.Pods, placement.Without)
	for i, node := range placement.With {
		pods = append(pods, bound(pod, fmt.Sprintf("with-%d", i), node))
	}
	asked = withPods(asked, pods)
	nodes, err := refusals(asked, pod)
	if err != nil || !placement.Scored {
		return placed{Nodes: nodes}, err
	}
	asked.Pod = pod
	asked.Feasible = nil
	for name, plugin := range nodes {
		if plugin == "" {
			asked.Feasible = append(asked.Feasible, name)
		}
	}
	scores, err := scoreSpread(asked)
	return placed{Nodes: nodes, Scores: &scores}, err
}

// bound returns a pod as it is once a node has it.
func bound(pod *v1.Pod, name, node string) *v1.Pod {
	found := pod.DeepCopy()
	found.Name = name
	found.Spec.NodeName = node
	found.Status.Phase = v1.PodRunning
	return found
}

// likeness returns a pod as its owner would make it again: one that nobody has placed.
func likeness(pods []*v1.Pod, name string) *v1.Pod {
	for _, pod := range pods {
		if pod.Name == name {
			found := pod.DeepCopy()
			found.Name = "next"
			found.DeletionTimestamp = nil
			found.Spec.NodeName = ""
			found.Status = v1.PodStatus{Phase: v1.PodPending}
			return found
		}
	}
	return nil
}

func remaining(pods []*v1.Pod, gone []string) []*v1.Pod {
	left := map[string]bool{}
	for _, name := range gone {
		left[name] = true
	}
	found := []*v1.Pod{}
	for _, pod := range pods {
		if !left[pod.Name] {
			found = append(found, pod)
		}
	}
	return found
}

func withPods(asked question, pods []*v1.Pod) question {
	asked.Pods = pods
	return asked
}

// refusals asks the filters in the order of the scheduler's default plugins.
func refusals(asked question, pod *v1.Pod) (map[string]string, error) {
	spread, nodes, err := newSpread(asked)
	if err != nil {
		return nil, err
	}
	held, err := newHandle(asked)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	unschedulable, err := nodeunschedulable.New(ctx, nil, held, gated())
	if err != nil {
		return nil, err
	}
	tainted, err := tainttoleration.New(ctx, nil, held, gated())
	if err != nil {
		return nil, err
	}
	excluded, err := nodeaffinity.New(ctx, &config.NodeAffinityArgs{}, held, gated())
	if err != nil {
		return nil, err
	}
	affinity, err := interpodaffinity.New(ctx, &config.InterPodAffinityArgs{HardPodAffinityWeight: 1}, held, gated())
	if err != nil {
		return nil, err
	}
	found := feasible(nodes)
	refuse(found, nodeunschedulable.Name, unschedulable.(filterPlugin), pod, nodes)
	refuse(found, tainttoleration.Name, tainted.(filterPlugin), pod, nodes)
	refuse(found, nodeaffinity.Name, excluded.(filterPlugin), pod, nodes)
	for _, node := range nodes {
		if found[node.Node().Name] == "" && len(insufficient(pod, node)) > 0 {
			found[node.Node().Name] = noderesources.Name
		}
	}
	refuse(found, podtopologyspread.Name, spread, pod, nodes)
	refuse(found, interpodaffinity.Name, affinity.(filterPlugin), pod, nodes)
	return found, nil
}

// refuse writes the name of a plugin to the nodes that it refuses and that none before it did.
func refuse(found map[string]string, name string, plugin filterPlugin, pod *v1.Pod, nodes []nodeInfo) {
	state := framework.NewCycleState()
	failed := false
	if first, ok := plugin.(preFilterPlugin); ok {
		status := preFilter(first, state, pod, nodes)
		if status.IsSkip() {
			return
		}
		failed = !status.IsSuccess()
	}
	for _, node := range nodes {
		if found[node.Node().Name] != "" {
			continue
		}
		if failed || !plugin.Filter(context.Background(), state, pod, node).IsSuccess() {
			found[node.Node().Name] = name
		}
	}
}
