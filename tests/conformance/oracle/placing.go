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

// placement asks which nodes would take one more pod like Pod.
type placement struct {
	Pod string `json:"pod"`
	// Without names pods that have been removed.
	Without []string `json:"without"`
	// With names the nodes of additional such pods.
	With []string `json:"with"`
	// Scored asks for the scores of the nodes that take it.
	Scored bool `json:"scored"`
}

// placed maps every node's name to the first plugin that refuses it, or to "". Scores are those of the nodes with "".
type placed struct {
	Nodes  map[string]string `json:"nodes"`
	Scores *scored           `json:"scores,omitempty"`
}

func placePods(query question) (any, error) {
	answers := []placed{}
	for _, placement := range query.Placements {
		answer, err := placeNext(query, placement)
		if err != nil {
			return nil, err
		}
		answers = append(answers, answer)
	}
	return map[string]any{"placed": answers}, nil
}

func placeNext(query question, placement placement) (placed, error) {
	pod := likeness(query.Pods, placement.Pod)
	pods := remaining(query.Pods, placement.Without)
	for i, node := range placement.With {
		pods = append(pods, bound(pod, fmt.Sprintf("with-%d", i), node))
	}
	query = withPods(query, pods)
	nodes, err := refusals(query, pod)
	if err != nil || !placement.Scored {
		return placed{Nodes: nodes}, err
	}
	query.Pod = pod
	query.Feasible = nil
	for name, plugin := range nodes {
		if plugin == "" {
			query.Feasible = append(query.Feasible, name)
		}
	}
	scores, err := scoreSpread(query)
	return placed{Nodes: nodes, Scores: &scores}, err
}

// bound returns a copy of a pod that is bound to a node.
func bound(pod *v1.Pod, name, node string) *v1.Pod {
	copied := pod.DeepCopy()
	copied.Name = name
	copied.Spec.NodeName = node
	copied.Status.Phase = v1.PodRunning
	return copied
}

// likeness returns a pod as its owner would create it again, without a node.
func likeness(pods []*v1.Pod, name string) *v1.Pod {
	for _, pod := range pods {
		if pod.Name == name {
			next := pod.DeepCopy()
			next.Name = "next"
			next.DeletionTimestamp = nil
			next.Spec.NodeName = ""
			next.Status = v1.PodStatus{Phase: v1.PodPending}
			return next
		}
	}
	return nil
}

func remaining(pods []*v1.Pod, gone []string) []*v1.Pod {
	evicted := map[string]bool{}
	for _, name := range gone {
		evicted[name] = true
	}
	staying := []*v1.Pod{}
	for _, pod := range pods {
		if !evicted[pod.Name] {
			staying = append(staying, pod)
		}
	}
	return staying
}

func withPods(query question, pods []*v1.Pod) question {
	query.Pods = pods
	return query
}

// refusals asks the filters in the order of the scheduler's default plugins.
func refusals(query question, pod *v1.Pod) (map[string]string, error) {
	spread, nodes, err := newSpread(query)
	if err != nil {
		return nil, err
	}
	cluster, err := newHandle(query)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	unschedulable, err := nodeunschedulable.New(ctx, nil, cluster, gated())
	if err != nil {
		return nil, err
	}
	tainted, err := tainttoleration.New(ctx, nil, cluster, gated())
	if err != nil {
		return nil, err
	}
	excluded, err := nodeaffinity.New(ctx, &config.NodeAffinityArgs{}, cluster, gated())
	if err != nil {
		return nil, err
	}
	affinity, err := interpodaffinity.New(ctx, &config.InterPodAffinityArgs{HardPodAffinityWeight: 1}, cluster, gated())
	if err != nil {
		return nil, err
	}
	refusedBy := feasible(nodes)
	refuse(refusedBy, nodeunschedulable.Name, unschedulable.(filterPlugin), pod, nodes)
	refuse(refusedBy, tainttoleration.Name, tainted.(filterPlugin), pod, nodes)
	refuse(refusedBy, nodeaffinity.Name, excluded.(filterPlugin), pod, nodes)
	for _, node := range nodes {
		if refusedBy[node.Node().Name] == "" && len(insufficient(pod, node)) > 0 {
			refusedBy[node.Node().Name] = noderesources.Name
		}
	}
	refuse(refusedBy, podtopologyspread.Name, spread, pod, nodes)
	refuse(refusedBy, interpodaffinity.Name, affinity.(filterPlugin), pod, nodes)
	return refusedBy, nil
}

// refuse writes the name of a plugin to the nodes that it is the first to refuse.
func refuse(refusedBy map[string]string, name string, plugin filterPlugin, pod *v1.Pod, nodes []nodeInfo) {
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
		if refusedBy[node.Node().Name] != "" {
			continue
		}
		if failed || !plugin.Filter(context.Background(), state, pod, node).IsSuccess() {
			refusedBy[node.Node().Name] = name
		}
	}
}
