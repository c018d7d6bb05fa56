package main

import (
	"context"
	"sort"

	inf "gopkg.in/inf.v0"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	corepod "k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
)

type fitted struct {
	// Quantities are in thousandths; null stands for a text that is not a quantity.
	Quantities map[string]*string  `json:"quantities,omitempty"`
	Requests   map[string]int64    `json:"requests"`
	Nodes      map[string][]string `json:"nodes,omitempty"`
}

// fitPod answers for pods as the API server stores them.
func fitPod(query question) (any, error) {
	// The gate is off by default in 1.33, where a pod has resources of its own only with the gate on.
	if err := utilfeature.DefaultMutableFeatureGate.Set("PodLevelResources=true"); err != nil {
		return nil, err
	}
	pod, err := storedPod(query.Pod)
	if err != nil {
		return nil, err
	}
	for i, other := range query.Pods {
		if query.Pods[i], err = storedPod(other); err != nil {
			return nil, err
		}
	}
	for _, node := range query.Nodes {
		legacyscheme.Scheme.Default(node)
	}
	cluster, err := newHandle(query)
	if err != nil {
		return nil, err
	}
	nodes, err := cluster.snapshot.List()
	if err != nil {
		return nil, err
	}
	fit := fitted{Quantities: parsed(query.Quantities), Requests: requests(pod), Nodes: map[string][]string{}}
	for _, node := range nodes {
		fit.Nodes[node.Node().Name] = reasons(insufficient(pod, node))
	}
	return fit, nil
}

func storedPod(external *v1.Pod) (*v1.Pod, error) {
	internal, err := internalPod(external)
	if err != nil {
		return nil, err
	}
	status := internal.Status
	corepod.Strategy.PrepareForCreate(context.Background(), internal)
	internal.Status = status
	converted := &v1.Pod{}
	if err := legacyscheme.Scheme.Convert(internal, converted, nil); err != nil {
		return nil, err
	}
	// Quantities come back from etcd in canonical form. PodRequests adds overhead in place to a quantity beyond int64.
	body, err := converted.Marshal()
	if err != nil {
		return nil, err
	}
	stored := &v1.Pod{}
	err = stored.Unmarshal(body)
	return stored, err
}

func parsed(texts []string) map[string]*string {
	numbers := map[string]*string{}
	for _, text := range texts {
		numbers[text] = nil
		if quantity, err := resource.ParseQuantity(text); err == nil {
			// The same as SetDefaults_ResourceList.
			quantity.RoundUp(resource.Milli)
			number := new(inf.Dec).Round(quantity.AsDec(), 3, inf.RoundUp).UnscaledBig().String()
			numbers[text] = &number
		}
	}
	return numbers
}

func requests(pod *v1.Pod) map[string]int64 {
	total := framework.Resource{}
	total.SetMaxResource(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}))
	all := map[string]int64{
		"pods":              1,
		"cpu":               total.MilliCPU,
		"memory":            total.Memory,
		"ephemeral-storage": total.EphemeralStorage,
	}
	for name, amount := range total.ScalarResources {
		all[string(name)] = amount
	}
	for name, amount := range all {
		if amount == 0 {
			delete(all, name)
		}
	}
	return all
}

// reasons returns the reasons of insufficient resources. Scalar resources are sorted, since a map has no order.
func reasons(shortages []noderesources.InsufficientResource) []string {
	sort.SliceStable(shortages, func(i, j int) bool {
		return scalarName(shortages[i].ResourceName) < scalarName(shortages[j].ResourceName)
	})
	texts := []string{}
	for _, shortage := range shortages {
		texts = append(texts, shortage.Reason)
	}
	return texts
}

func scalarName(name v1.ResourceName) string {
	switch name {
	case v1.ResourcePods, v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage:
		return ""
	}
	return string(name)
}
