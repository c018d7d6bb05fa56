package main

import (
	"context"
	"reflect"

	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"
)

// spreadState is the key of podtopologyspread's preFilterStateKey, which is not exported.
const spreadState = "PreFilter" + podtopologyspread.Name

type filtered struct {
	Skipped     bool              `json:"skipped,omitempty"`
	Status      string            `json:"status,omitempty"`
	Constraints []counted         `json:"constraints,omitempty"`
	Nodes       map[string]string `json:"nodes,omitempty"`
}

type counted struct {
	MatchNum    map[string]int `json:"matchNum"`
	MinMatchNum int            `json:"minMatchNum"`
}

type scored struct {
	Skipped bool             `json:"skipped,omitempty"`
	Status  string           `json:"status,omitempty"`
	Scores  map[string]int64 `json:"scores,omitempty"`
}

func newSpread(query question) (*podtopologyspread.PodTopologySpread, []nodeInfo, error) {
	cluster, err := newHandle(query)
	if err != nil {
		return nil, nil, err
	}
	args := &config.PodTopologySpreadArgs{
		DefaultConstraints: query.DefaultConstraints,
		DefaultingType:     config.ListDefaulting,
	}
	if query.SystemDefaults {
		args = &config.PodTopologySpreadArgs{DefaultingType: config.SystemDefaulting}
	}
	plugin, err := podtopologyspread.New(context.Background(), args, cluster, gated())
	if err != nil {
		return nil, nil, err
	}
	nodes, err := cluster.snapshot.List()
	return plugin.(*podtopologyspread.PodTopologySpread), nodes, err
}

func filterSpread(query question) (any, error) {
	plugin, nodes, err := newSpread(query)
	if err != nil {
		return nil, err
	}
	state := framework.NewCycleState()
	status := preFilter(plugin, state, query.Pod, nodes)
	if status.IsSkip() {
		return filtered{Skipped: true}, nil
	}
	if !status.IsSuccess() {
		return filtered{Status: described(status)}, nil
	}
	constraints, err := counts(state)
	if err != nil {
		return nil, err
	}
	return filtered{Constraints: constraints, Nodes: filterNodes(plugin, state, query.Pod, nodes)}, nil
}

// counts reads podtopologyspread's preFilterState, whose type is not exported but whose fields are.
func counts(state cycleState) ([]counted, error) {
	data, err := state.Read(spreadState)
	if err != nil {
		return nil, err
	}
	fields := reflect.ValueOf(data).Elem()
	spreads := []counted{}
	for i, matchNum := range fields.FieldByName("TpValueToMatchNum").Interface().([]map[string]int) {
		constraint := fields.FieldByName("Constraints").Index(i)
		paths := fields.FieldByName("CriticalPaths").Index(i).Elem()
		// The same as minMatchNum, a method that is not exported.
		least := int(paths.Index(0).FieldByName("MatchNum").Int())
		if len(matchNum) < int(constraint.FieldByName("MinDomains").Int()) {
			least = 0
		}
		spreads = append(spreads, counted{MatchNum: matchNum, MinMatchNum: least})
	}
	return spreads, nil
}

func scoreSpread(query question) (scored, error) {
	plugin, nodes, err := newSpread(query)
	if err != nil {
		return scored{}, err
	}
	state := framework.NewCycleState()
	candidates := named(nodes, query.Feasible)
	status := plugin.PreScore(context.Background(), state, query.Pod, candidates)
	if status.IsSkip() {
		return scored{Skipped: true}, nil
	}
	if !status.IsSuccess() {
		return scored{Status: described(status)}, nil
	}
	scores := nodeScoreList{}
	for _, node := range candidates {
		raw, status := scoreNode(plugin, state, query.Pod, node)
		if !status.IsSuccess() {
			return scored{Status: described(status)}, nil
		}
		scores = append(scores, nodeScore{Name: node.Node().Name, Score: raw})
	}
	plugin.NormalizeScore(context.Background(), state, query.Pod, scores)
	byName := map[string]int64{}
	for _, score := range scores {
		byName[score.Name] = score.Score
	}
	return scored{Scores: byName}, nil
}

func named(nodes []nodeInfo, names []string) []nodeInfo {
	included := map[string]bool{}
	for _, name := range names {
		included[name] = true
	}
	infos := []nodeInfo{}
	for _, node := range nodes {
		if included[node.Node().Name] {
			infos = append(infos, node)
		}
	}
	return infos
}
