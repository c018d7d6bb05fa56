package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

const (
	patience = 60 * time.Second
	observer = "Observer"
	// listed is a version after those of all objects: a watch that begins there does not send them again.
	listed = "1000000"
)

// step is one attempt to place a pod.
type step struct {
	Pod string `json:"pod"`
	// Feasible names the nodes that pass all filters.
	Feasible []string `json:"feasible"`
	// Scores has the weighted scores of the nodes that the scheduler found before it stopped looking, by plugin.
	Scores map[string]map[string]int64 `json:"scores"`
	// Node is the chosen node; "" where none is feasible.
	Node string `json:"node"`
}

// recorder observes the attempts of a scheduler. As a plugin it sees which nodes the scheduler scores.
type recorder struct {
	mutex      sync.Mutex
	steps      []step
	waiting    map[string]bool
	done       chan struct{}
	err        error
	candidates []fwk.NodeInfo
}

func (r *recorder) Name() string { return observer }

func (r *recorder) PreScore(_ context.Context, _ fwk.CycleState, _ *v1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	r.candidates = nodes
	return fwk.NewStatus(fwk.Skip)
}

// schedule runs a scheduler until it has tried each pod of the queue.
func schedule(ctx context.Context, query question) ([]step, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	recorder := &recorder{waiting: map[string]bool{}, done: make(chan struct{})}
	for _, pod := range query.Queue {
		recorder.waiting[pod.Name] = true
	}
	if len(recorder.waiting) == 0 {
		return []step{}, nil
	}
	client := newClient(query)
	informers := scheduler.NewInformerFactory(client, 0, nil)
	profile, err := newProfile()
	if err != nil {
		return nil, err
	}
	built, err := scheduler.New(ctx, client, informers, nil,
		func(string) events.EventRecorderLogger { return &events.FakeRecorder{} },
		scheduler.WithProfiles(profile),
		scheduler.WithFrameworkOutOfTreeRegistry(frameworkruntime.Registry{
			observer: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return recorder, nil },
		}),
		// With more, chance decides which nodes of a large cluster are looked at.
		scheduler.WithParallelism(1),
	)
	if err != nil {
		return nil, err
	}
	schedulePod := built.SchedulePod
	built.SchedulePod = func(
		ctx context.Context, profile framework.Framework, state fwk.CycleState, pod *framework.QueuedPodInfo,
	) (scheduler.ScheduleResult, error) {
		feasible, own, err := filter(ctx, profile, pod.Pod)
		if err != nil {
			recorder.fail(err)
		}
		recorder.candidates = nil
		result, failure := schedulePod(ctx, profile, state, pod)
		scores, err := score(ctx, profile, own, pod.Pod, recorder.candidates)
		if err != nil {
			recorder.fail(err)
		}
		recorder.add(step{Pod: pod.Pod.Name, Feasible: feasible, Scores: scores, Node: result.SuggestedHost}, failure)
		return result, failure
	}
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	if err := built.WaitForHandlersSync(ctx); err != nil {
		return nil, err
	}
	go built.Run(ctx)
	select {
	case <-recorder.done:
	case <-ctx.Done():
		return nil, errors.New("the scheduler has not tried all pods in time")
	}
	recorder.mutex.Lock()
	defer recorder.mutex.Unlock()
	return recorder.steps, recorder.err
}

// newClient returns a client that lists nodes and pods in the order of the question: a fake client sorts them by name.
func newClient(query question) *fake.Clientset {
	nodes := &v1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: listed}}
	for _, node := range query.Nodes {
		nodes.Items = append(nodes.Items, *node)
	}
	objects := appended(nil, query.Pods)
	objects = appended(objects, query.Queue)
	objects = appended(objects, query.Namespaces)
	objects = appended(objects, query.Services)
	objects = appended(objects, query.ReplicaSets)
	objects = appended(objects, query.Claims)
	objects = appended(objects, query.Volumes)
	client := fake.NewSimpleClientset(objects...)
	pods := &v1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: listed}}
	for _, pod := range append(slices.Clone(query.Pods), query.Queue...) {
		pods.Items = append(pods.Items, *pod)
	}
	for resource, list := range map[string]runtime.Object{"nodes": nodes, "pods": pods} {
		client.PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, list, nil
		})
	}
	return client
}

func appended[T runtime.Object](objects []runtime.Object, more []T) []runtime.Object {
	for _, object := range more {
		objects = append(objects, object)
	}
	return objects
}

// newProfile returns the default profile with the observer.
func newProfile() (config.KubeSchedulerProfile, error) {
	defaults, err := latest.Default()
	if err != nil {
		return config.KubeSchedulerProfile{}, err
	}
	profile := defaults.Profiles[0]
	plugins := &profile.Plugins.MultiPoint
	plugins.Enabled = append(plugins.Enabled, config.Plugin{Name: observer})
	return profile, nil
}

func (r *recorder) fail(err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.err = errors.Join(r.err, err)
}

// add notes a step; a pod that fits on no node is no failure.
func (r *recorder) add(step step, failure error) {
	var unfit *framework.FitError
	if failure != nil && !errors.As(failure, &unfit) && !errors.Is(failure, scheduler.ErrNoNodesAvailable) {
		r.fail(failure)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if len(r.waiting) == 0 {
		return
	}
	r.steps = append(r.steps, step)
	delete(r.waiting, step.Pod)
	if len(r.waiting) == 0 {
		close(r.done)
	}
}

// filter returns the nodes that pass all filters, and the state of the plugins.
func filter(ctx context.Context, profile framework.Framework, pod *v1.Pod) ([]string, fwk.CycleState, error) {
	state, feasible := framework.NewCycleState(), []string{}
	restricted, status, _ := profile.RunPreFilterPlugins(ctx, state, pod)
	if status.IsRejected() {
		return feasible, state, nil
	}
	if !status.IsSuccess() {
		return nil, nil, status.AsError()
	}
	nodes, err := profile.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return nil, nil, err
	}
	for _, node := range nodes {
		name := node.Node().Name
		if !restricted.AllNodes() && !restricted.NodeNames.Has(name) {
			continue
		}
		if profile.RunFilterPlugins(ctx, state, pod, node).IsSuccess() {
			feasible = append(feasible, name)
		}
	}
	return feasible, state, nil
}

// score returns the weighted scores of nodes, by plugin and node.
func score(
	ctx context.Context, profile framework.Framework, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo,
) (map[string]map[string]int64, error) {
	scores := map[string]map[string]int64{}
	if len(nodes) == 0 {
		return scores, nil
	}
	if status := profile.RunPreScorePlugins(ctx, state, pod, nodes); !status.IsSuccess() {
		return nil, status.AsError()
	}
	scored, status := profile.RunScorePlugins(ctx, state, pod, nodes)
	if !status.IsSuccess() {
		return nil, status.AsError()
	}
	for _, node := range scored {
		for _, plugin := range node.Scores {
			if scores[plugin.Name] == nil {
				scores[plugin.Name] = map[string]int64{}
			}
			scores[plugin.Name][node.Name] = plugin.Score
		}
	}
	return scores, nil
}
