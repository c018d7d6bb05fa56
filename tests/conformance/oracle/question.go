package main

import (
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
)

// question is one case. Kind decides which fields are read.
type question struct {
	Kind string `json:"kind"`

	// Pod is the pod to create, to update to, or to place.
	Pod *v1.Pod `json:"pod"`
	// Old is the stored pod that an update changes.
	Old        *v1.Pod            `json:"old"`
	Deployment *appsv1.Deployment `json:"deployment"`

	Nodes                  []*v1.Node                  `json:"nodes"`
	Pods                   []*v1.Pod                   `json:"pods"`
	Namespaces             []*v1.Namespace             `json:"namespaces"`
	Services               []*v1.Service               `json:"services"`
	ReplicaSets            []*appsv1.ReplicaSet        `json:"replicaSets"`
	StatefulSets           []*appsv1.StatefulSet       `json:"statefulSets"`
	ReplicationControllers []*v1.ReplicationController `json:"replicationControllers"`

	// Quantities are texts that may be quantities.
	Quantities []string `json:"quantities"`
	// Placements ask which nodes would take a pod like one of Pods.
	Placements []placement `json:"placements"`
	// Feasible names the nodes that pass all filters.
	Feasible []string `json:"feasible"`
	// SystemDefaults turns the built-in default constraints on. Without it, DefaultConstraints are used.
	SystemDefaults     bool                          `json:"systemDefaults"`
	DefaultConstraints []v1.TopologySpreadConstraint `json:"defaultConstraints"`
}
