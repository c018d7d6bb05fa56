package removepodsviolatingtopologyspreadconstraint

import (
	v1 "k8s.io/api/core/v1"
)

// Counted is what Balance has counted for one constraint of one namespace.
type Counted struct {
	Domains  map[string]int `json:"domains"`
	Violated bool           `json:"violated"`

	namespace  string
	constraint topologySpreadConstraint
}

var observed []Counted

// observe is called by Balance, by a line that the build adds, once a constraint's domains are complete.
func observe(namespace string, constraint topologySpreadConstraint, topologies map[topologyPair][]*v1.Pod) {
	domains := map[string]int{}
	for pair, pods := range topologies {
		domains[pair.value] = len(pods)
	}
	violated := !topologyIsBalanced(topologies, constraint)
	observed = append(observed, Counted{domains, violated, namespace, constraint})
}

// Forget drops what has been observed.
func Forget() { observed = nil }

// Observed returns what Balance counted for a pod's constraint, or nil where it did not look at it.
func Observed(pod *v1.Pod, constraint v1.TopologySpreadConstraint) *Counted {
	wanted, err := newTopologySpreadConstraint(constraint, pod)
	if err != nil {
		return nil
	}
	for _, one := range observed {
		if one.namespace == pod.Namespace && hasIdenticalConstraints(wanted, []topologySpreadConstraint{one.constraint}) {
			return &one
		}
	}
	return nil
}
