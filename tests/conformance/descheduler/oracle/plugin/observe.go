package removepodsviolatingtopologyspreadconstraint

import (
	v1 "k8s.io/api/core/v1"
)

// Counted is the count of Balance for one constraint of one namespace.
type Counted struct {
	Domains  map[string]int `json:"domains"`
	Violated bool           `json:"violated"`

	namespace  string
	constraint topologySpreadConstraint
}

var observed []Counted

// observe is called in Balance, where the build adds the call, when the domains of a constraint are complete.
func observe(namespace string, constraint topologySpreadConstraint, topologies map[topologyPair][]*v1.Pod) {
	domains := map[string]int{}
	for pair, pods := range topologies {
		domains[pair.value] = len(pods)
	}
	violated := !topologyIsBalanced(topologies, constraint)
	observed = append(observed, Counted{domains, violated, namespace, constraint})
}

// Forget removes all observed counts.
func Forget() { observed = nil }

// Observed returns the count of Balance for a pod's constraint, or nil if it has none.
func Observed(pod *v1.Pod, constraint v1.TopologySpreadConstraint) *Counted {
	typed, err := newTopologySpreadConstraint(constraint, pod)
	if err != nil {
		return nil
	}
	for _, count := range observed {
		if count.namespace == pod.Namespace && hasIdenticalConstraints(typed, []topologySpreadConstraint{count.constraint}) {
			return &count
		}
	}
	return nil
}
