package main

import (
	"context"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity"
)

func filterAffinity(asked question) (any, error) {
	held, err := newHandle(asked)
	if err != nil {
		return nil, err
	}
	args := &config.InterPodAffinityArgs{HardPodAffinityWeight: 1}
	made, err := interpodaffinity.New(context.Background(), args, held, gated())
	if err != nil {
		return nil, err
	}
	nodes, err := held.snapshot.List()
	if err != nil {
		return nil, err
	}
	plugin := made.(*interpodaffinity.InterPodAffinity)
	state := framework.NewCycleState()
	status := preFilter(plugin, state, asked.Pod, nodes)
	if status.IsSkip() {
		// Filter is not called: it would refuse no node.
		return filtered{Nodes: feasible(nodes)}, nil
	}
	if !status.IsSuccess() {
		return filtered{Status: described(status)}, nil
	}
	return filtered{Nodes: filterNodes(plugin, state, asked.Pod, nodes)}, nil
}

// filterNodes maps each node's name to what Filter says: "" is success.
func filterNodes(plugin filterPlugin, state cycleState, pod *v1.Pod, nodes []nodeInfo) map[string]string {
	found := map[string]string{}
	for _, node := range nodes {
		found[node.Node().Name] = described(plugin.Filter(context.Background(), state, pod, node))
	}
	return found
}

func feasible(nodes []nodeInfo) map[string]string {
	found := map[string]string{}
	for _, node := range nodes {
		found[node.Node().Name] = ""
	}
	return found
}

func described(found *status) string {
	if found.IsSuccess() {
		return ""
	}
	return found.Code().String() + ": " + strings.Join(found.Reasons(), "; ")
}
