package coexistence

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/edpm-operators/edpm-operators/apis/common"
)

// +kubebuilder:rbac:groups="",namespace=system,resources=pods,verbs=get
// +kubebuilder:rbac:groups="",namespace=system,resources=pods/status,verbs=patch

// Report notes in the log which operators run and which do not, and adds to the manager
// what notes it on its Pod, if it runs in one.
func Report(mgr manager.Manager, decision Decision, pod types.NamespacedName) error {
	ctrl.Log.Info("Running operators", "operators", decision.Running)
	for _, out := range decision.LeftOut {
		ctrl.Log.Info("Left out operator", "operator", out.Operator, "reason", out.Reason, "message", out.Message)
	}
	if pod.Name == "" {
		return nil
	}
	return mgr.Add(&podReport{
		decision: decision, pod: pod,
		client: mgr.GetClient(), live: mgr.GetAPIReader(), events: mgr.GetEventRecorder("operators"),
	})
}

// longestNote is how long the note of an event may be.
const longestNote = 1024

// podReport reports on the Pod of the manager which operators it runs.
type podReport struct {
	decision Decision
	pod      types.NamespacedName
	client   client.Client
	live     client.Reader
	events   events.EventRecorder
}

// NeedLeaderElection is false: what a manager would run holds before it leads.
func (*podReport) NeedLeaderElection() bool { return false }

// Start writes the condition if it is another one, with an event if
// operators are disabled. That it cannot be written is no reason not to work.
func (r *podReport) Start(ctx context.Context) error {
	if err := r.write(ctx); err != nil {
		ctrl.Log.Error(err, "Failed to report on the Pod which operators run")
	}
	return nil
}

func (r *podReport) write(ctx context.Context) error {
	pod := &corev1.Pod{}
	if err := r.live.Get(ctx, r.pod, pod); err != nil {
		return err
	}
	before := pod.DeepCopy()
	if !setCondition(pod, r.decision) {
		return nil
	}
	if err := r.client.Status().Patch(ctx, pod, client.StrategicMergeFrom(before)); err != nil {
		return err
	}
	if isTrue, reason, message := r.decision.Condition(); !isTrue {
		r.events.Eventf(pod, nil, corev1.EventTypeWarning, string(reason), "Starting", "%s", message[:min(len(message), longestNote)])
	}
	return nil
}

// setCondition reports whether the condition of the Pod had to be changed.
func setCondition(pod *corev1.Pod, decision Decision) bool {
	isTrue, reason, message := decision.Condition()
	c := corev1.PodCondition{Type: corev1.PodConditionType(common.OperatorsRunningCondition), Status: corev1.ConditionFalse, Reason: string(reason), Message: message}
	if isTrue {
		c.Status = corev1.ConditionTrue
	}
	for i, old := range pod.Status.Conditions {
		if old.Type != c.Type {
			continue
		}
		c.LastTransitionTime = old.LastTransitionTime
		if old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message {
			return false
		}
		if old.Status != c.Status {
			c.LastTransitionTime = metav1.NewTime(time.Now())
		}
		pod.Status.Conditions[i] = c
		return true
	}
	c.LastTransitionTime = metav1.NewTime(time.Now())
	pod.Status.Conditions = append(pod.Status.Conditions, c)
	return true
}
