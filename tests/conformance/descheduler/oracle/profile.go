package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"sort"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/descheduler/pkg/api"
	deschedulerapp "sigs.k8s.io/descheduler/pkg/descheduler"
	"sigs.k8s.io/descheduler/pkg/descheduler/evictions"
	podutil "sigs.k8s.io/descheduler/pkg/descheduler/pod"
	"sigs.k8s.io/descheduler/pkg/framework/pluginregistry"
	"sigs.k8s.io/descheduler/pkg/framework/plugins/defaultevictor"
	plugin "sigs.k8s.io/descheduler/pkg/framework/plugins/removepodsviolatingtopologyspreadconstraint"
	frameworktypes "sigs.k8s.io/descheduler/pkg/framework/types"
)

//go:embed policy.yaml
var policyFile []byte

type handle = frameworktypes.Handle

// descheduler is one profile of the policy, and the handle of its plugins; a part that they do not use is a nil
// dereference. Pods come from an indexer that is filled by hand. No informer is ever started.
type descheduler struct {
	handle
	evictor frameworktypes.EvictorPlugin
	plugin  frameworktypes.BalancePlugin
	factory informers.SharedInformerFactory
	onNode  podutil.GetPodsAssignedToNodeFunc
	evicted map[string]bool
}

func (d *descheduler) Evictor() frameworktypes.Evictor                              { return d }
func (d *descheduler) ClientSet() clientset.Interface                               { return nil }
func (d *descheduler) SharedInformerFactory() informers.SharedInformerFactory       { return d.factory }
func (d *descheduler) GetPodsAssignedToNodeFunc() podutil.GetPodsAssignedToNodeFunc { return d.onNode }
func (d *descheduler) Filter(pod *v1.Pod) bool                                      { return d.evictor.Filter(pod) }
func (d *descheduler) PreEvictionFilter(pod *v1.Pod) bool                           { return d.evictor.PreEvictionFilter(pod) }

// Evict records the namespace of a pod that would be evicted.
func (d *descheduler) Evict(_ context.Context, pod *v1.Pod, _ evictions.EvictOptions) error {
	d.evicted[pod.Namespace] = true
	return nil
}

// newDescheduler builds the plugins of a profile with the arguments that the descheduler derives from the policy.
func newDescheduler(ctx context.Context, profileName string) (*descheduler, error) {
	profile, err := loadProfile(profileName)
	if err != nil {
		return nil, err
	}
	d := &descheduler{factory: informers.NewSharedInformerFactory(nil, 0)}
	if d.onNode, err = podutil.BuildGetPodsAssignedToNodeFunc(d.factory.Core().V1().Pods().Informer()); err != nil {
		return nil, err
	}
	evictor, err := d.build(ctx, profile, defaultevictor.PluginName)
	if err != nil {
		return nil, err
	}
	d.evictor = evictor.(frameworktypes.EvictorPlugin)
	balance, err := d.build(ctx, profile, plugin.PluginName)
	if err != nil {
		return nil, err
	}
	d.plugin = balance.(frameworktypes.BalancePlugin)
	return d, nil
}

func (d *descheduler) build(ctx context.Context, profile api.DeschedulerProfile, name string) (frameworktypes.Plugin, error) {
	var args runtime.Object
	for _, config := range profile.PluginConfigs {
		if config.Name == name {
			args = config.Args
		}
	}
	return pluginregistry.PluginRegistry[name].PluginBuilder(ctx, args, d)
}

func loadProfile(name string) (api.DeschedulerProfile, error) {
	deschedulerapp.SetupPlugins()
	// The descheduler reads its policy from a file only.
	file, err := os.CreateTemp("", "policy-*.yaml")
	if err != nil {
		return api.DeschedulerProfile{}, err
	}
	defer os.Remove(file.Name())
	if _, err := file.Write(policyFile); err != nil {
		return api.DeschedulerProfile{}, err
	}
	if err := file.Close(); err != nil {
		return api.DeschedulerProfile{}, err
	}
	policy, err := deschedulerapp.LoadPolicyConfig(file.Name(), nil, pluginregistry.PluginRegistry)
	if err != nil {
		return api.DeschedulerProfile{}, err
	}
	for _, profile := range policy.Profiles {
		if profile.Name == name {
			return profile, nil
		}
	}
	return api.DeschedulerProfile{}, fmt.Errorf("no profile %q", name)
}

// balance runs the plugin on a cluster and records its counts and evictions.
func (d *descheduler) balance(nodes []*v1.Node, pods []*v1.Pod) error {
	d.evicted = map[string]bool{}
	plugin.Forget()
	if err := fill(d.factory.Core().V1().Pods().Informer().GetIndexer(), pods); err != nil {
		return err
	}
	if status := d.plugin.Balance(context.Background(), nodes); status != nil {
		return status.Err
	}
	return nil
}

func fill[T any](indexer cache.Indexer, objects []T) error {
	items := make([]any, 0, len(objects))
	for _, object := range objects {
		items = append(items, object)
	}
	return indexer.Replace(items, "")
}

// namespaces returns the namespaces of evicted pods.
func (d *descheduler) namespaces() []string {
	names := []string{}
	for namespace := range d.evicted {
		names = append(names, namespace)
	}
	sort.Strings(names)
	return names
}
