package placement

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	plugin "k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// notPlayed are the plugins of the default profile that the prediction leaves out:
// they evict other pods, and hand out devices.
var notPlayed = sets.New(plugin.DefaultPreemption, plugin.DynamicResources)

// profile returns the default profile of kube-scheduler without notPlayed.
var profile = sync.OnceValues(func() (*config.KubeSchedulerProfile, error) {
	metrics.Register() // the framework writes to them unasked
	defaults, err := latest.Default()
	if err != nil {
		return nil, fmt.Errorf("making the default profile of kube-scheduler: %w", err)
	}
	profile := &defaults.Profiles[0]
	enabled := &profile.Plugins.MultiPoint.Enabled
	*enabled = slices.DeleteFunc(*enabled, func(p config.Plugin) bool { return notPlayed.Has(p.Name) })
	return profile, nil
})

// scheduler is kube-scheduler's framework over a snapshot that can be changed:
// one scheduling cycle at a time, no queue, no binding, no API.
type scheduler struct {
	framework.Framework
	lister *sharedLister
	stop   context.CancelFunc
}

// newScheduler makes a scheduler. The objects of the informers may still change;
// the informers never run. It holds a goroutine until stop is called.
func newScheduler(ctx context.Context, objects informers.SharedInformerFactory, nodes *nodeInfos) (*scheduler, error) {
	profile, err := profile()
	if err != nil {
		return nil, err
	}
	lister := newSharedLister(nodes)
	ctx, stop := context.WithCancel(ctx)
	f, err := frameworkruntime.NewFramework(ctx, plugins.NewInTreeRegistry(), profile,
		frameworkruntime.WithSnapshotSharedLister(lister),
		frameworkruntime.WithInformerFactory(objects),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(objects.Storage().V1().CSINodes().Lister())),
		frameworkruntime.WithParallelism(1), // a prediction must not take the manager's processors
	)
	if err != nil {
		stop()
		return nil, fmt.Errorf("making the scheduler's framework: %w", err)
	}
	return &scheduler{Framework: f, lister: lister, stop: stop}, nil
}

// outcome of one scheduling cycle.
type outcome struct {
	pod *corev1.Pod
	// best are the nodes that score highest, by name, and node is the one that is
	// taken; none and empty if the pod fits nowhere.
	best []string
	node string
	// feasible are all nodes that the pod fits on, sorted.
	feasible []string
	// statuses say why it does not fit on the other nodes.
	statuses *framework.NodeToStatus
	// refusal says why it fits nowhere; nil if it fits.
	refusal *framework.FitError
	// denied is why the API server does not create the pod; nil if it does.
	denied error
	// state is what the plugins know, for reserve.
	state fwk.CycleState
}

// message is what the scheduler says of a pod that fits nowhere.
func (o outcome) message() string {
	switch {
	case o.denied != nil:
		return o.denied.Error()
	case o.refusal == nil:
		return ""
	case o.refusal.NumAllNodes == 0:
		return "no nodes available to schedule pods"
	}
	return o.refusal.Error()
}

// schedule runs one scheduling cycle as schedulePod of pkg/scheduler does, but
// looks at every node, whatever the size of the cluster.
func (s *scheduler) schedule(ctx context.Context, pod *corev1.Pod) (outcome, error) {
	o := outcome{pod: pod, state: framework.NewCycleState()}
	fits, refusal, err := s.filter(ctx, o.state, pod, s.lister.list)
	if err != nil {
		return outcome{}, err
	}
	o.statuses = refusal.Diagnosis.NodeToStatus
	if len(fits) == 0 {
		o.refusal = refusal
		return o, nil
	}
	for _, n := range fits {
		o.feasible = append(o.feasible, n.Node().Name)
	}
	slices.Sort(o.feasible)
	if o.best, err = s.best(ctx, o.state, pod, fits); err != nil {
		return outcome{}, err
	}
	o.node = o.best[0]
	return o, nil
}

// filter returns the nodes that the pod fits on, and why not on the others.
func (s *scheduler) filter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, all []fwk.NodeInfo) ([]fwk.NodeInfo, *framework.FitError, error) {
	refusal := &framework.FitError{Pod: pod, NumAllNodes: len(all)}
	statuses := framework.NewDefaultNodeToStatus()
	refusal.Diagnosis.NodeToStatus = statuses
	restriction, status, plugins := s.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() {
		if !status.IsRejected() {
			return nil, nil, fmt.Errorf("scheduling pod %s: %w", pod.Name, status.AsError())
		}
		statuses.SetAbsentNodesStatus(status)
		refusal.Diagnosis.PreFilterMsg = status.Message()
		return nil, refusal, nil
	}
	candidates := all
	if !restriction.AllNodes() {
		candidates = slices.DeleteFunc(slices.Clone(all), func(n fwk.NodeInfo) bool { return !restriction.NodeNames.Has(n.Node().Name) })
		by := sets.List(plugins)
		reason := fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", by)
		statuses.SetAbsentNodesStatus(fwk.NewStatus(fwk.UnschedulableAndUnresolvable, reason).WithPlugin(by[0]))
	}
	fits, err := s.filterEach(ctx, state, pod, candidates, statuses)
	return fits, refusal, err
}

func (s *scheduler) filterEach(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo, statuses *framework.NodeToStatus) ([]fwk.NodeInfo, error) {
	var fits []fwk.NodeInfo
	for _, node := range nodes {
		status := s.RunFilterPlugins(ctx, state, pod, node)
		if status.IsSuccess() {
			fits = append(fits, node)
			continue
		}
		if status.Code() == fwk.Error {
			return nil, fmt.Errorf("trying pod %s on node %s: %w", pod.Name, node.Node().Name, status.AsError())
		}
		statuses.Set(node.Node().Name, status)
	}
	return fits, nil
}

// best returns the nodes that score highest, by name. The scheduler takes any of them.
func (s *scheduler) best(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) ([]string, error) {
	if len(nodes) == 1 {
		return []string{nodes[0].Node().Name}, nil
	}
	if status := s.RunPreScorePlugins(ctx, state, pod, nodes); !status.IsSuccess() {
		return nil, fmt.Errorf("scoring nodes for pod %s: %w", pod.Name, status.AsError())
	}
	scores, status := s.RunScorePlugins(ctx, state, pod, nodes)
	if !status.IsSuccess() {
		return nil, fmt.Errorf("scoring nodes for pod %s: %w", pod.Name, status.AsError())
	}
	highest := slices.MaxFunc(scores, func(a, b fwk.NodePluginScores) int { return cmp.Compare(a.TotalScore, b.TotalScore) }).TotalScore
	var best []string
	for _, score := range scores {
		if score.TotalScore == highest {
			best = append(best, score.Name)
		}
	}
	slices.Sort(best)
	return best, nil
}

// place puts the pod of an outcome on a feasible node, and promises it the
// volumes that the scheduler would choose for it there.
func (s *scheduler) place(ctx context.Context, o outcome, node string) error {
	pod := o.pod.DeepCopy()
	pod.Spec.NodeName = node
	if status := s.RunReservePluginsReserve(ctx, o.state, pod, node); !status.IsSuccess() {
		return fmt.Errorf("reserving volumes of pod %s on node %s: %w", pod.Name, node, status.AsError())
	}
	return s.lister.add(pod, node)
}

// remove takes a pod off its node; no error if it is on none.
func (s *scheduler) remove(pod *corev1.Pod) error {
	if !occupiesNode(pod) {
		return nil
	}
	return s.lister.remove(withUID(pod), pod.Spec.NodeName)
}
