package main

import (
	"context"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity"
)

func filterAffinity(query question) (any, error) {
	cluster, err := newHandle(query)
	if err != nil {
		return nil, err
	}
	args := &config.InterPodAffinityArgs{HardPodAffinityWeight: 1}
	built, err := interpodaffinity.New(context.Background(), args, cluster, gated())
	if err != nil {
		return nil, err
	}
	nodes, err := cluster.snapshot.List()
	if err != nil {
		return nil, err
	}
	plugin := built.(*interpodaffinity.InterPodAffinity)
	state := framework.NewCycleState()
	status := preFilter(plugin, state, query.Pod, nodes)
	if status.IsSkip() {
		// The scheduler does not call Filter, which would refuse no node.
		return filtered{Nodes: feasible(nodes)}, nil
	}
	if !status.IsSuccess() {
		return filtered{Status: described(status)}, nil
	}
	return filtered{Nodes: filterNodes(plugin, state, query.Pod, nodes)}, nil
}

// filterNodes maps each node's name to the answer of Filter: "" is success.
func filterNodes(plugin filterPlugin, state cycleState, pod *v1.Pod, nodes []nodeInfo) map[string]string {
	answers := map[string]string{}
	for _, node := range nodes {
		answers[node.Node().Name] = described(plugin.Filter(context.Background(), state, pod, node))
	}
	return answers
}

func feasible(nodes []nodeInfo) map[string]string {
	answers := map[string]string{}
	for _, node := range nodes {
		answers[node.Node().Name] = ""
	}
	return answers
}

func described(outcome *status) string {
	if outcome.IsSuccess() {
		return ""
	}
	return outcome.Code().String() + ": " + strings.Join(outcome.Reasons(), "; ")
}
