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

// clause is what the merge reads and writes of a spread constraint or an affinity term.
type clause struct {
	LabelSelector     *metav1.LabelSelector `json:"labelSelector"`
	MatchLabelKeys    []string              `json:"matchLabelKeys,omitempty"`
	MismatchLabelKeys []string              `json:"mismatchLabelKeys,omitempty"`
}

type created struct {
	Stored   map[string][]clause `json:"stored"`
	Errors   []string            `json:"errors"`
	Warnings []string            `json:"warnings"`
}

type judged struct {
	Errors []string `json:"errors"`
}

type admitted struct {
	Errors   []string `json:"errors"`
	Warnings []string `json:"warnings"`
}

func createPod(asked question) (any, error) {
	internal, err := internalPod(asked.Pod)
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
		Stored:   clauses(stored.Spec),
		Errors:   ours(pod.Strategy.Validate(ctx, internal), "spec"),
		Warnings: ourWarnings(pod.Strategy.WarningsOnCreate(ctx, internal), "spec"),
	}, nil
}

func updatePod(asked question) (any, error) {
	old, err := internalPod(asked.Old)
	if err != nil {
		return nil, err
	}
	changed, err := internalPod(asked.Pod)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	pod.Strategy.PrepareForUpdate(ctx, changed, old)
	return judged{Errors: ours(pod.Strategy.ValidateUpdate(ctx, changed, old), "spec")}, nil
}

func createDeployment(asked question) (any, error) {
	legacyscheme.Scheme.Default(asked.Deployment)
	var internal apps.Deployment
	if err := legacyscheme.Scheme.Convert(asked.Deployment, &internal, nil); err != nil {
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

// ours returns the errors on spread constraints and pod (anti)affinity, in the order in which they were found.
func ours(found field.ErrorList, spec string) []string {
	texts := []string{}
	for _, one := range found {
		if concernsUs(strings.TrimPrefix(one.Field, spec)) {
			texts = append(texts, one.Error())
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

func clauses(spec v1.PodSpec) map[string][]clause {
	stored := map[string][]clause{"spread": {}}
	for _, constraint := range spec.TopologySpreadConstraints {
		one := clause{LabelSelector: constraint.LabelSelector, MatchLabelKeys: constraint.MatchLabelKeys}
		stored["spread"] = append(stored["spread"], one)
	}
	if spec.Affinity == nil {
		return stored
	}
	if found := spec.Affinity.PodAffinity; found != nil {
		stored["podAffinity.required"] = ofTerms(found.RequiredDuringSchedulingIgnoredDuringExecution)
		stored["podAffinity.preferred"] = ofWeighted(found.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if found := spec.Affinity.PodAntiAffinity; found != nil {
		stored["podAntiAffinity.required"] = ofTerms(found.RequiredDuringSchedulingIgnoredDuringExecution)
		stored["podAntiAffinity.preferred"] = ofWeighted(found.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return stored
}

func ofTerms(terms []v1.PodAffinityTerm) []clause {
	found := []clause{}
	for _, term := range terms {
		found = append(found, clause{term.LabelSelector, term.MatchLabelKeys, term.MismatchLabelKeys})
	}
	return found
}

func ofWeighted(weighted []v1.WeightedPodAffinityTerm) []clause {
	terms := []v1.PodAffinityTerm{}
	for _, one := range weighted {
		terms = append(terms, one.PodAffinityTerm)
	}
	return ofTerms(terms)
}
