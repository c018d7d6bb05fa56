package main

import (
	"context"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/core/pod"
)

const templateSpec = "spec.template.spec"

// mergedTerm has the fields that the merge reads and writes of a spread constraint or an affinity term.
type mergedTerm struct {
	LabelSelector     *metav1.LabelSelector `json:"labelSelector"`
	MatchLabelKeys    []string              `json:"matchLabelKeys,omitempty"`
	MismatchLabelKeys []string              `json:"mismatchLabelKeys,omitempty"`
}

type created struct {
	Stored   map[string][]mergedTerm `json:"stored"`
	Errors   []string                `json:"errors"`
	Warnings []string                `json:"warnings"`
}

type updated struct {
	Errors []string `json:"errors"`
}

type admitted struct {
	Errors   []string `json:"errors"`
	Warnings []string `json:"warnings"`
}

func createPod(query question) (any, error) {
	internal, err := internalPod(query.Pod)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	pod.Strategy.PrepareForCreate(ctx, internal)
	var stored v1.Pod
	if err := legacyscheme.Scheme.Convert(internal, &stored, nil); err != nil {
		return nil, err
	}
	return created{
		Stored:   mergedTerms(stored.Spec),
		Errors:   ours(pod.Strategy.Validate(ctx, internal), "spec"),
		Warnings: ourWarnings(pod.Strategy.WarningsOnCreate(ctx, internal), "spec"),
	}, nil
}

func updatePod(query question) (any, error) {
	old, err := internalPod(query.Old)
	if err != nil {
		return nil, err
	}
	changed, err := internalPod(query.Pod)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	pod.Strategy.PrepareForUpdate(ctx, changed, old)
	return updated{Errors: ours(pod.Strategy.ValidateUpdate(ctx, changed, old), "spec")}, nil
}

func createDeployment(query question) (any, error) {
	legacyscheme.Scheme.Default(query.Deployment)
	var internal apps.Deployment
	if err := legacyscheme.Scheme.Convert(query.Deployment, &internal, nil); err != nil {
		return nil, err
	}
	ctx := context.Background()
	deployment.Strategy.PrepareForCreate(ctx, &internal)
	return admitted{
		Errors:   ours(deployment.Strategy.Validate(ctx, &internal), templateSpec),
		Warnings: ourWarnings(deployment.Strategy.WarningsOnCreate(ctx, &internal), templateSpec),
	}, nil
}

func internalPod(external *v1.Pod) (*core.Pod, error) {
	legacyscheme.Scheme.Default(external)
	var internal core.Pod
	err := legacyscheme.Scheme.Convert(external, &internal, nil)
	return &internal, err
}

// ours returns the errors on spread constraints and pod (anti)affinity, in their order.
func ours(list field.ErrorList, spec string) []string {
	texts := []string{}
	for _, err := range list {
		if concernsUs(strings.TrimPrefix(err.Field, spec)) {
			texts = append(texts, err.Error())
		}
	}
	return texts
}

func concernsUs(path string) bool {
	return strings.HasPrefix(path, ".topologySpreadConstraints") ||
		strings.HasPrefix(path, ".affinity.podAffinity") ||
		strings.HasPrefix(path, ".affinity.podAntiAffinity")
}

func ourWarnings(warnings []string, spec string) []string {
	texts := []string{}
	for _, text := range warnings {
		if concernsUs(strings.TrimPrefix(text, spec)) {
			texts = append(texts, text)
		}
	}
	return texts
}

func mergedTerms(spec v1.PodSpec) map[string][]mergedTerm {
	stored := map[string][]mergedTerm{"spread": {}}
	for _, constraint := range spec.TopologySpreadConstraints {
		term := mergedTerm{LabelSelector: constraint.LabelSelector, MatchLabelKeys: constraint.MatchLabelKeys}
		stored["spread"] = append(stored["spread"], term)
	}
	if spec.Affinity == nil {
		return stored
	}
	if affinity := spec.Affinity.PodAffinity; affinity != nil {
		stored["podAffinity.required"] = ofTerms(affinity.RequiredDuringSchedulingIgnoredDuringExecution)
		stored["podAffinity.preferred"] = ofWeighted(affinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if affinity := spec.Affinity.PodAntiAffinity; affinity != nil {
		stored["podAntiAffinity.required"] = ofTerms(affinity.RequiredDuringSchedulingIgnoredDuringExecution)
		stored["podAntiAffinity.preferred"] = ofWeighted(affinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return stored
}

func ofTerms(terms []v1.PodAffinityTerm) []mergedTerm {
	merged := []mergedTerm{}
	for _, term := range terms {
		merged = append(merged, mergedTerm{term.LabelSelector, term.MatchLabelKeys, term.MismatchLabelKeys})
	}
	return merged
}

func ofWeighted(weighted []v1.WeightedPodAffinityTerm) []mergedTerm {
	terms := []v1.PodAffinityTerm{}
	for _, preferred := range weighted {
		terms = append(terms, preferred.PodAffinityTerm)
	}
	return ofTerms(terms)
}
