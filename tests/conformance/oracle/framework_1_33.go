//go:build kube33

package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/parallelize"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
)

type (
	frameworkHandle = framework.Handle
	sharedLister    = framework.SharedLister
	parallelizer    = parallelize.Parallelizer
	nodeInfo        = *framework.NodeInfo
	cycleState      = *framework.CycleState
	status          = framework.Status
	nodeScoreList   = framework.NodeScoreList
	nodeScore       = framework.NodeScore
	filterPlugin    = framework.FilterPlugin
	preFilterPlugin = framework.PreFilterPlugin
)

func preFilter(plugin framework.PreFilterPlugin, state cycleState, pod *v1.Pod, _ []nodeInfo) *status {
	_, outcome := plugin.PreFilter(context.Background(), state, pod)
	return outcome
}

func scoreNode(plugin framework.ScorePlugin, state cycleState, pod *v1.Pod, node nodeInfo) (int64, *status) {
	return plugin.Score(context.Background(), state, pod, node)
}

func insufficient(pod *v1.Pod, node nodeInfo) []noderesources.InsufficientResource {
	return noderesources.Fits(pod, node, noderesources.ResourceRequestsOptions{EnablePodLevelResources: true})
}

// gated returns the features that NewInTreeRegistry derives from the gates.
func gated() feature.Features {
	gate := utilfeature.DefaultFeatureGate
	return feature.Features{
		EnableNodeInclusionPolicyInPodTopologySpread: gate.Enabled(features.NodeInclusionPolicyInPodTopologySpread),
		EnableMatchLabelKeysInPodTopologySpread:      gate.Enabled(features.MatchLabelKeysInPodTopologySpread),
	}
}
