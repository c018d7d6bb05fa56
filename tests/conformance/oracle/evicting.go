package main

import (
	"fmt"
	"sort"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

const (
	within    = "within"
	beyond    = "beyond"
	undecided = "undecided"
	// mostStates is how many states of one eviction are looked at until it is undecided.
	mostStates = 300
)

// eviction asks how the skew of a pod's constraint ends once some pods are evicted and replaced.
type eviction struct {
	// Constraint is an index among the hard constraints of the evicted pods.
	Constraint int      `json:"constraint"`
	Pods       []string `json:"pods"`
}

// evictPods tells for each eviction whether the skew ends within maxSkew wherever the filters let the replacements go,
// or whether one of the ways to place them ends beyond it, a replacement that no node takes included.
func evictPods(asked question) (any, error) {
	ends := []string{}
	for _, eviction := range asked.Evictions {
		found := search{asked: asked, constraint: eviction.Constraint, seen: map[string]bool{}, left: mostStates}
		for _, name := range eviction.Pods {
			found.replacements = append(found.replacements, likeness(asked.Pods, name))
		}
		end, err := found.worst(remaining(asked.Pods, eviction.Pods), nil)
		if err != nil {
			return nil, err
		}
		ends = append(ends, end)
	}
	return map[string]any{"ends": ends}, nil
}

// search looks at the ways to place replacements in their order, the worst first; seen are the states that end within.
type search struct {
	asked        question
	constraint   int
	replacements []*v1.Pod
	seen         map[string]bool
	left         int
}

// worst returns the worst end that there is from a state: pods are all, chosen the nodes of the replacements so far.
func (s *search) worst(pods []*v1.Pod, chosen []string) (string, error) {
	if len(chosen) == len(s.replacements) {
		return s.end(pods)
	}
	key := s.state(chosen)
	if s.seen[key] {
		return within, nil
	}
	if s.left == 0 {
		return undecided, nil
	}
	s.left--
	replacement := s.replacements[len(chosen)]
	nodes, err := s.allowed(pods, replacement)
	if err != nil {
		return "", err
	}
	if len(nodes) == 0 {
		return beyond, nil
	}
	found := within
	for _, node := range nodes {
		placed := bound(replacement, fmt.Sprintf("replacement-%d", len(chosen)), node)
		end, err := s.worst(append(append([]*v1.Pod{}, pods...), placed), append(append([]string{}, chosen...), node))
		if err != nil || end == beyond {
			return end, err
		}
		if end == undecided {
			found = undecided
		}
	}
	s.seen[key] = found == within
	return found, nil
}

// state tells apart what the filters can tell apart: how many replacements of each kind are on which node.
func (s *search) state(chosen []string) string {
	placed := []string{}
	for i, node := range chosen {
		placed = append(placed, fmt.Sprint(node, s.replacements[i].Labels, s.replacements[i].Spec.String()))
	}
	sort.Strings(placed)
	return strings.Join(placed, "\n")
}

// allowed returns the nodes that take a replacement, those of the fullest domains first.
func (s *search) allowed(pods []*v1.Pod, replacement *v1.Pod) ([]string, error) {
	refused, err := refusals(withPods(s.asked, pods), replacement)
	if err != nil {
		return nil, err
	}
	key := hardConstraint(replacement, s.constraint).TopologyKey
	values := map[string]string{}
	for _, node := range s.asked.Nodes {
		values[node.Name] = node.Labels[key]
	}
	held := map[string]int{}
	for _, pod := range pods {
		held[values[pod.Spec.NodeName]]++
	}
	found := []string{}
	for name, plugin := range refused {
		if plugin == "" {
			found = append(found, name)
		}
	}
	sort.Strings(found)
	sort.SliceStable(found, func(i, j int) bool { return held[values[found[i]]] > held[values[found[j]]] })
	return found, nil
}

// end tells whether the constraint is within maxSkew, by the counts of the real PreFilter.
func (s *search) end(pods []*v1.Pod) (string, error) {
	replacement := s.replacements[0]
	plugin, nodes, err := newSpread(withPods(s.asked, pods))
	if err != nil {
		return "", err
	}
	state := framework.NewCycleState()
	if status := preFilter(plugin, state, replacement, nodes); !status.IsSuccess() {
		return "", fmt.Errorf("PreFilter: %s", described(status))
	}
	constraints, err := counts(state)
	if err != nil {
		return "", err
	}
	found, most := constraints[s.constraint], 0
	for _, number := range found.MatchNum {
		most = max(most, number)
	}
	if most-found.MinMatchNum <= int(hardConstraint(replacement, s.constraint).MaxSkew) {
		return within, nil
	}
	return beyond, nil
}

func hardConstraint(pod *v1.Pod, index int) v1.TopologySpreadConstraint {
	found := []v1.TopologySpreadConstraint{}
	for _, constraint := range pod.Spec.TopologySpreadConstraints {
		if constraint.WhenUnsatisfiable == v1.DoNotSchedule {
			found = append(found, constraint)
		}
	}
	return found[index]
}
