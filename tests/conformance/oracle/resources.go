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
	// Quantities are in thousandths; null: it is none.
	Quantities map[string]*string  `json:"quantities,omitempty"`
	Requests   map[string]int64    `json:"requests"`
	Nodes      map[string][]string `json:"nodes,omitempty"`
}

// fitPod answers for a pod as the apiserver stores it, among other pods as it stores them.
func fitPod(asked question) (any, error) {
	// Off in 1.33 by default, where a pod with resources of its own exists only with the gate on.
	if err := utilfeature.DefaultMutableFeatureGate.Set("PodLevelResources=true"); err != nil {
		return nil, err
	}
	pod, err := storedPod(asked.Pod)
	if err != nil {
		return nil, err
	}
	for i, other := range asked.Pods {
		if asked.Pods[i], err = storedPod(other); err != nil {
			return nil, err
		}
	}
	for _, node := range asked.Nodes {
		legacyscheme.Scheme.Default(node)
	}
	held, err := newHandle(asked)
	if err != nil {
		return nil, err
	}
	nodes, err := held.snapshot.List()
	if err != nil {
		return nil, err
	}
	found := fitted{Quantities: parsed(asked.Quantities), Requests: requests(pod), Nodes: map[string][]string{}}
	for _, node := range nodes {
		found.Nodes[node.Node().Name] = reasons(insufficient(pod, node))
	}
	return found, nil
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
	// As it comes back from etcd, its quantities in canonical form: PodRequests adds overhead to what is no int64 in place.
	body, err := converted.Marshal()
	if err != nil {
		return nil, err
	}
	stored := &v1.Pod{}
	err = stored.Unmarshal(body)
	return stored, err
}

func parsed(texts []string) map[string]*string {
	found := map[string]*string{}
	for _, text := range texts {
		found[text] = nil
		if quantity, err := resource.ParseQuantity(text); err == nil {
			// As SetDefaults_ResourceList does.
			quantity.RoundUp(resource.Milli)
			number := new(inf.Dec).Round(quantity.AsDec(), 3, inf.RoundUp).UnscaledBig().String()
			found[text] = &number
		}
	}
	return found
}

func requests(pod *v1.Pod) map[string]int64 {
	asked := framework.Resource{}
	asked.SetMaxResource(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}))
	all := map[string]int64{
		"pods":              1,
		"cpu":               asked.MilliCPU,
		"memory":            asked.Memory,
		"ephemeral-storage": asked.EphemeralStorage,
	}
	for name, amount := range asked.ScalarResources {
		all[string(name)] = amount
	}
	for name, amount := range all {
		if amount == 0 {
			delete(all, name)
		}
	}
	return all
}

// reasons returns what is insufficient; scalar resources, which come in the order of a map, by name.
func reasons(found []noderesources.InsufficientResource) []string {
	sort.SliceStable(found, func(i, j int) bool {
		return scalarName(found[i].ResourceName) < scalarName(found[j].ResourceName)
	})
	texts := []string{}
	for _, one := range found {
		texts = append(texts, one.Reason)
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
