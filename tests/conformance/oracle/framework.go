//go:build !kube33 && !kube34

package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
)

type (
	frameworkHandle = fwk.Handle
	sharedLister    = fwk.SharedLister
	parallelizer    = fwk.Parallelizer
	nodeInfo        = fwk.NodeInfo
	cycleState      = fwk.CycleState
	status          = fwk.Status
	nodeScoreList   = fwk.NodeScoreList
	nodeScore       = fwk.NodeScore
	filterPlugin    = fwk.FilterPlugin
	preFilterPlugin = fwk.PreFilterPlugin
)

func preFilter(plugin fwk.PreFilterPlugin, state cycleState, pod *v1.Pod, nodes []nodeInfo) *status {
	_, outcome := plugin.PreFilter(context.Background(), state, pod, nodes)
	return outcome
}

func scoreNode(plugin fwk.ScorePlugin, state cycleState, pod *v1.Pod, node nodeInfo) (int64, *status) {
	return plugin.Score(context.Background(), state, pod, node)
}

func insufficient(pod *v1.Pod, node nodeInfo) []noderesources.InsufficientResource {
	return noderesources.Fits(pod, node, nil, noderesources.ResourceRequestsOptions{EnablePodLevelResources: true})
}

func gated() feature.Features {
	return feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
}
