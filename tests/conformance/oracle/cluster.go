package main

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework/parallelize"
)

// factory lists objects from indexers that are filled by hand. No informer is ever started.
var factory = informers.NewSharedInformerFactory(nil, 0)

var (
	namespaces             = factory.Core().V1().Namespaces().Informer().GetIndexer()
	services               = factory.Core().V1().Services().Informer().GetIndexer()
	replicationControllers = factory.Core().V1().ReplicationControllers().Informer().GetIndexer()
	replicaSets            = factory.Apps().V1().ReplicaSets().Informer().GetIndexer()
	statefulSets           = factory.Apps().V1().StatefulSets().Informer().GetIndexer()
)

// handle has the parts of the framework that the plugins use; any other part is a nil dereference.
type handle struct {
	frameworkHandle
	snapshot *schedulercache.Snapshot
}

func (h *handle) SnapshotSharedLister() sharedLister                     { return h.snapshot }
func (h *handle) SharedInformerFactory() informers.SharedInformerFactory { return factory }
func (h *handle) Parallelizer() parallelizer                             { return parallelize.NewParallelizer(1) }

// newHandle returns the cluster of a question as the scheduler's cache would have it.
func newHandle(query question) (*handle, error) {
	fills := []error{
		fill(namespaces, query.Namespaces),
		fill(services, query.Services),
		fill(replicationControllers, query.ReplicationControllers),
		fill(replicaSets, query.ReplicaSets),
		fill(statefulSets, query.StatefulSets),
	}
	for _, err := range fills {
		if err != nil {
			return nil, err
		}
	}
	return &handle{snapshot: schedulercache.NewSnapshot(cached(query.Pods, query.Nodes), query.Nodes)}, nil
}

func fill[T any](indexer cache.Indexer, objects []T) error {
	items := make([]any, 0, len(objects))
	for _, object := range objects {
		items = append(items, object)
	}
	return indexer.Replace(items, "")
}

// cached returns the pods in the scheduler's snapshot: bound to an existing node and not finished, because the informer
// selects status.phase!=Succeeded,status.phase!=Failed (newPodInformer).
func cached(pods []*v1.Pod, nodes []*v1.Node) []*v1.Pod {
	nodeNames := map[string]bool{}
	for _, node := range nodes {
		nodeNames[node.Name] = true
	}
	inCache := []*v1.Pod{}
	for _, pod := range pods {
		finished := pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
		if nodeNames[pod.Spec.NodeName] && !finished {
			inCache = append(inCache, pod)
		}
	}
	return inCache
}
