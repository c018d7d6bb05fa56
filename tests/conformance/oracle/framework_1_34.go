//go:build kube34

package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/parallelize"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
)

type (
	frameworkHandle = framework.Handle
	sharedLister    = framework.SharedLister
	parallelizer    = parallelize.Parallelizer
	nodeInfo        = fwk.NodeInfo
	cycleState      = fwk.CycleState
	status          = fwk.Status
	nodeScoreList   = framework.NodeScoreList
	nodeScore       = framework.NodeScore
	filterPlugin    = framework.FilterPlugin
	preFilterPlugin = framework.PreFilterPlugin
)

func preFilter(plugin framework.PreFilterPlugin, state cycleState, pod *v1.Pod, nodes []nodeInfo) *status {
	_, outcome := plugin.PreFilter(context.Background(), state, pod, nodes)
	return outcome
}

func scoreNode(plugin framework.ScorePlugin, state cycleState, pod *v1.Pod, node nodeInfo) (int64, *status) {
	return plugin.Score(context.Background(), state, pod, node)
}

func insufficient(pod *v1.Pod, node nodeInfo) []noderesources.InsufficientResource {
	return noderesources.Fits(pod, node, noderesources.ResourceRequestsOptions{EnablePodLevelResources: true})
}

func gated() feature.Features {
	return feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
}
