// Command oracle answers for which pending pods Karpenter's own scheduler makes nodes, and where.
//
// Each line of standard input is a question in JSON; each line of standard output is its answer.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"github.com/samber/lo"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	requirements "sigs.k8s.io/karpenter/pkg/scheduling"
)

// Question is a cluster: the zones of the instance types of each NodePool, pods with and without a node, and the zones
// of the volumes of pods without one.
type Question struct {
	NodePools   []*v1.NodePool      `json:"nodePools"`
	Zones       map[string][]string `json:"zones"`
	Nodes       []*corev1.Node      `json:"nodes"`
	Pods        []*corev1.Pod       `json:"pods"`
	Pending     []*corev1.Pod       `json:"pending"`
	VolumeZones map[string]string   `json:"volumeZones"`
}

// Claim is a node that would be made; it has no zones where any may be chosen.
type Claim struct {
	NodePool string   `json:"nodePool"`
	Zones    []string `json:"zones"`
	Pods     []string `json:"pods"`
}

// Answer has the nodes, and why there is none for other pods.
type Answer struct {
	Claims []Claim           `json:"claims"`
	Errors map[string]string `json:"errors"`
}

// instanceType returns a type that fits every pod and is available in all of its zones.
func instanceType(zones []string) *cloudprovider.InstanceType {
	in := func(key string, values ...string) *requirements.Requirement {
		return requirements.NewRequirement(key, corev1.NodeSelectorOpIn, values...)
	}
	offerings := lo.Map(zones, func(zone string, _ int) *cloudprovider.Offering {
		return &cloudprovider.Offering{
			Requirements: requirements.NewLabelRequirements(map[string]string{
				v1.CapacityTypeLabelKey:  v1.CapacityTypeOnDemand,
				corev1.LabelTopologyZone: zone,
			}),
			Price:     1,
			Available: true,
		}
	})
	return &cloudprovider.InstanceType{
		Name: "large",
		Requirements: requirements.NewRequirements(
			in(corev1.LabelInstanceTypeStable, "large"),
			in(corev1.LabelArchStable, "amd64"),
			in(corev1.LabelOSStable, "linux"),
			in(corev1.LabelTopologyZone, zones...),
			in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand),
		),
		Offerings: offerings,
		Capacity: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("8"),
			corev1.ResourceMemory: resource.MustParse("32Gi"),
			corev1.ResourcePods:   resource.MustParse("110"),
		},
		Overhead: &cloudprovider.InstanceTypeOverhead{},
	}
}

// track tells the cluster of the pods with a node, among which it finds those with anti-affinity.
func track(ctx context.Context, cluster *state.Cluster, question Question) error {
	for _, node := range question.Nodes {
		// It tracks no node of a NodePool without an instance type.
		tracked := node.DeepCopy()
		delete(tracked.Labels, v1.NodePoolLabelKey)
		if err := cluster.UpdateNode(ctx, tracked); err != nil {
			return err
		}
	}
	for _, pod := range question.Pods {
		if err := cluster.UpdatePod(ctx, pod); err != nil {
			return err
		}
	}
	return nil
}

// ofVolumes returns what the volumes of pods require, as the provisioner finds it.
func ofVolumes(question Question) map[types.UID][]requirements.Requirements {
	required := map[types.UID][]requirements.Requirements{}
	for _, pod := range question.Pending {
		if zone, ok := question.VolumeZones[pod.Name]; ok {
			in := requirements.NewRequirement(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, zone)
			required[pod.UID] = []requirements.Requirements{requirements.NewRequirements(in)}
		}
	}
	return required
}

func answer(ctx context.Context, question Question) (Answer, error) {
	objects := []client.Object{}
	stateNodes := []*state.StateNode{}
	for _, node := range question.Nodes {
		objects = append(objects, node)
		stateNode := state.NewNode()
		stateNode.Node = node
		stateNodes = append(stateNodes, stateNode)
	}
	for _, pod := range append(question.Pods, question.Pending...) {
		objects = append(objects, pod)
	}
	kubeClient := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(object client.Object) []string {
			return []string{object.(*corev1.Pod).Spec.NodeName}
		}).Build()
	cluster := state.NewCluster(clock.RealClock{}, kubeClient, nil)
	if err := track(ctx, cluster, question); err != nil {
		return Answer{}, err
	}
	instanceTypes := map[string][]*cloudprovider.InstanceType{}
	for _, pool := range question.NodePools {
		instanceTypes[pool.Name] = []*cloudprovider.InstanceType{instanceType(question.Zones[pool.Name])}
	}
	topology, err := scheduling.NewTopology(
		ctx, kubeClient, cluster, stateNodes, question.NodePools, instanceTypes, question.Pending,
	)
	if err != nil {
		return Answer{}, err
	}
	recorder := events.NewRecorder(&record.FakeRecorder{})
	scheduler := scheduling.NewScheduler(
		ctx, kubeClient, question.NodePools, cluster, stateNodes, topology, instanceTypes, nil, recorder,
		clock.RealClock{}, ofVolumes(question), nil,
	)
	results, err := scheduler.Solve(ctx, question.Pending)
	if err != nil {
		return Answer{}, err
	}
	given := Answer{Claims: []Claim{}, Errors: map[string]string{}}
	for _, claim := range results.NewNodeClaims {
		zone := claim.Requirements.Get(corev1.LabelTopologyZone)
		zones := []string{}
		// The values of other operators are those that are not allowed.
		if zone.Operator() == corev1.NodeSelectorOpIn {
			zones = zone.Values()
		}
		given.Claims = append(given.Claims, Claim{
			NodePool: claim.NodePoolName,
			Zones:    zones,
			Pods:     lo.Map(claim.Pods, func(pod *corev1.Pod, _ int) string { return pod.Name }),
		})
	}
	for pod, podError := range results.PodErrors {
		given.Errors[pod.Name] = podError.Error()
	}
	return given, nil
}

func main() {
	log.SetLogger(logr.Discard())
	ctx := options.ToContext(context.Background(), &options.Options{
		PreferencePolicy:  options.PreferencePolicyRespect,
		MinValuesPolicy:   options.MinValuesPolicyStrict,
		IgnoreDRARequests: true,
	})
	lines := bufio.NewReader(os.Stdin)
	encoder := json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		question := Question{}
		if err = json.Unmarshal(line, &question); err == nil {
			var given Answer
			if given, err = answer(ctx, question); err == nil {
				err = encoder.Encode(given)
			}
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
