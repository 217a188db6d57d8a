package main

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/edpm-operators/edpm-operators/apis/common"
	"github.com/edpm-operators/edpm-operators/internal/coexistence"
)

// +kubebuilder:rbac:groups="",namespace=system,resources=pods,verbs=get
// +kubebuilder:rbac:groups="",namespace=system,resources=pods/status,verbs=patch

// definitions follows the resource definitions that decide which operators run.
type definitions struct {
	operators []string
	informers map[string]toolscache.SharedIndexInformer
}

// followDefinitions returns once it is known which definitions there are.
func followDefinitions(ctx context.Context, config *rest.Config, operators []string) (*definitions, error) {
	c, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	d := &definitions{operators: operators, informers: map[string]toolscache.SharedIndexInformer{}}
	for _, name := range coexistence.Names(operators) {
		only := func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("metadata.name", name).String()
		}
		informer := metadatainformer.NewFilteredMetadataInformer(c, apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"), "", 0, toolscache.Indexers{}, only).Informer()
		d.informers[name] = informer
		go informer.RunWithContext(ctx)
	}
	for name, informer := range d.informers {
		if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return nil, fmt.Errorf("reading definition %s: %w", name, context.Cause(ctx))
		}
	}
	return d, nil
}

// decide returns which operators run with the definitions that there are now.
func (d *definitions) decide() coexistence.Decision {
	found := coexistence.Definitions{}
	for name, informer := range d.informers {
		if obj, exists, _ := informer.GetStore().GetByKey(name); exists { // a store in memory knows no errors
			found[name] = coexistence.Ours(obj.(*metav1.PartialObjectMetadata).Labels)
		}
	}
	return coexistence.Decide(d.operators, found)
}

// whenChanged calls stop, once or more often, when the decision is another one.
func (d *definitions) whenChanged(decision coexistence.Decision, stop func()) error {
	look := func() {
		if now := d.decide(); !reflect.DeepEqual(now, decision) {
			ctrl.Log.Info("Restarting: the operators that can run or the kinds that they watch have changed",
				"before", decision.Running, "now", now.Running, "watchedBefore", decision.Watched, "watchedNow", now.Watched)
			stop()
		}
	}
	for name, informer := range d.informers {
		_, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { look() }, UpdateFunc: func(any, any) { look() }, DeleteFunc: func(any) { look() },
		})
		if err != nil {
			return fmt.Errorf("watching definition %s: %w", name, err)
		}
	}
	return nil
}

// tellDecision notes in the log which operators run and which do not, and adds to
// the manager what notes it on its Pod.
func tellDecision(mgr manager.Manager, decision coexistence.Decision) error {
	ctrl.Log.Info("Running operators", "operators", decision.Running)
	for _, out := range decision.LeftOut {
		ctrl.Log.Info("Left out operator", "operator", out.Operator, "reason", out.Reason, "message", out.Message)
	}
	name := os.Getenv("POD_NAME")
	if name == "" {
		return nil // not in a Pod
	}
	return mgr.Add(&podReport{
		decision: decision, pod: types.NamespacedName{Namespace: podNamespace(), Name: name},
		client: mgr.GetClient(), live: mgr.GetAPIReader(), events: mgr.GetEventRecorder("operators"),
	})
}

// longestNote is how long the note of an event may be.
const longestNote = 1024

// podReport reports on the Pod of the manager which operators it runs.
type podReport struct {
	decision coexistence.Decision
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
func setCondition(pod *corev1.Pod, decision coexistence.Decision) bool {
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
