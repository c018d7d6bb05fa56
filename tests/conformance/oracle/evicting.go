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
	// mostStates limits the states that are searched for one eviction; beyond it the eviction is undecided.
	mostStates = 300
)

// eviction asks for the skew of a constraint after some pods are evicted and replaced.
type eviction struct {
	// Constraint is an index among the hard constraints of the evicted pods.
	Constraint int      `json:"constraint"`
	Pods       []string `json:"pods"`
}

// evictPods returns for each eviction whether the skew is within maxSkew for every placement of the replacements that
// the filters allow. A replacement that no node takes counts as beyond maxSkew.
func evictPods(query question) (any, error) {
	ends := []string{}
	for _, eviction := range query.Evictions {
		run := search{query: query, constraint: eviction.Constraint, seen: map[string]bool{}, left: mostStates}
		for _, name := range eviction.Pods {
			run.replacements = append(run.replacements, likeness(query.Pods, name))
		}
		end, err := run.worst(remaining(query.Pods, eviction.Pods), nil)
		if err != nil {
			return nil, err
		}
		ends = append(ends, end)
	}
	return map[string]any{"ends": ends}, nil
}

// search tries the placements of replacements, the worst first. The states in seen have only ends within maxSkew.
type search struct {
	query        question
	constraint   int
	replacements []*v1.Pod
	seen         map[string]bool
	left         int
}

// worst returns the worst end from a state: all pods, and the chosen nodes of the replacements among them.
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
	worstEnd := within
	for _, node := range nodes {
		placed := bound(replacement, fmt.Sprintf("replacement-%d", len(chosen)), node)
		end, err := s.worst(append(append([]*v1.Pod{}, pods...), placed), append(append([]string{}, chosen...), node))
		if err != nil || end == beyond {
			return end, err
		}
		if end == undecided {
			worstEnd = undecided
		}
	}
	s.seen[key] = worstEnd == within
	return worstEnd, nil
}

// state returns equal texts for states that the filters cannot distinguish: each node has as many pods of each kind.
func (s *search) state(chosen []string) string {
	placed := []string{}
	for i, node := range chosen {
		placed = append(placed, fmt.Sprint(node, s.replacements[i].Labels, s.replacements[i].Spec.String()))
	}
	sort.Strings(placed)
	return strings.Join(placed, "\n")
}

// allowed returns the nodes that take a replacement, beginning with the fullest domains.
func (s *search) allowed(pods []*v1.Pod, replacement *v1.Pod) ([]string, error) {
	refused, err := refusals(withPods(s.query, pods), replacement)
	if err != nil {
		return nil, err
	}
	key := hardConstraint(replacement, s.constraint).TopologyKey
	values := map[string]string{}
	for _, node := range s.query.Nodes {
		values[node.Name] = node.Labels[key]
	}
	podsIn := map[string]int{}
	for _, pod := range pods {
		podsIn[values[pod.Spec.NodeName]]++
	}
	names := []string{}
	for name, plugin := range refused {
		if plugin == "" {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	sort.SliceStable(names, func(i, j int) bool { return podsIn[values[names[i]]] > podsIn[values[names[j]]] })
	return names, nil
}

// end returns whether the constraint is within maxSkew by the counts of the real PreFilter.
func (s *search) end(pods []*v1.Pod) (string, error) {
	replacement := s.replacements[0]
	plugin, nodes, err := newSpread(withPods(s.query, pods))
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
	spread, most := constraints[s.constraint], 0
	for _, number := range spread.MatchNum {
		most = max(most, number)
	}
	if most-spread.MinMatchNum <= int(hardConstraint(replacement, s.constraint).MaxSkew) {
		return within, nil
	}
	return beyond, nil
}

func hardConstraint(pod *v1.Pod, index int) v1.TopologySpreadConstraint {
	hard := []v1.TopologySpreadConstraint{}
	for _, constraint := range pod.Spec.TopologySpreadConstraints {
		if constraint.WhenUnsatisfiable == v1.DoNotSchedule {
			hard = append(hard, constraint)
		}
	}
	return hard[index]
}
