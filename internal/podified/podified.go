package podified

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/edpm-operators/edpm-operators/apis/common"
	podifiedv1 "github.com/edpm-operators/edpm-operators/apis/common/podified"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/attachments"
	"github.com/edpm-operators/edpm-operators/internal/images"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/placement"
)

const (
	// ServiceLabel is the label of pods by which the default anti-affinity and the
	// Topologies of the seeds know a service.
	ServiceLabel = "service"
	// ownerLabel has the name of the object that a pod is for.
	ownerLabel = "owner"
)

// Service is one StatefulSet, its configuration and its Services, as a
// controller wants them.
type Service struct {
	// Name of the StatefulSet.
	Name string
	// Component is the value of ServiceLabel, by default that of the Deployer. The
	// services of one owner differ in it.
	Component string
	// Status is where the state of the pods is noted.
	Status *podifiedv1.Status
	// Labels of the pods and of everything else, next to those that say what the
	// service is and whose. Nothing selects by them but Topologies: a version may
	// change them, which rolls the pods out and no more.
	Labels   map[string]string
	Replicas int32
	// TopologyRef in force, nil for none.
	TopologyRef        *topologyv1.TopologyRef
	NodeSelector       map[string]string
	NetworkAttachments []string
	// User and group of the processes, unless the cluster chooses one.
	User int64
	// Pod has the containers and volumes; Deploy adds the rest.
	Pod corev1.PodSpec
	// Causes of failures that containers leave as their termination messages.
	Causes []Cause
	// Claims that each pod has.
	Claims []corev1.PersistentVolumeClaim
	// Headless gives each pod a name in DNS, under a Service of the same name as
	// the StatefulSet.
	Headless bool
	// Services that select the pods, with name, ports and what was overridden.
	Services []*corev1.Service
	// Config files by name. They may be secret. Every container finds them in
	// the directory ConfigDir.
	Config    map[string][]byte
	ConfigDir string
}

// ConfigName is the name of the Secret with the configuration.
func (s *Service) ConfigName() string { return ConfigName(s.Name) }

// ConfigName is the name of the Secret with the configuration of a Service or Job.
func ConfigName(name string) string { return name + "-config-data" }

// labelled returns the service with more labels, which its claims have too.
func (s *Service) labelled(more map[string]string) *Service {
	complete := *s
	complete.Labels, complete.Claims = merge(more, s.Labels), slices.Clone(s.Claims)
	for i := range complete.Claims {
		complete.Claims[i].Labels = complete.Labels
	}
	return &complete
}

// Names of what a Deployer deploys.
type Names struct {
	// Controller is the name of the controller, without prefix.
	Controller string
	// Service is the value of ServiceLabel for services that set none.
	Service string
	// Finalizer by which objects are kept until nothing of them is left behind.
	Finalizer string
}

// Deployer deploys the services of one kind.
type Deployer struct {
	client.Client
	Names
	// Live reads past the cache.
	Live   client.Reader
	Inputs *inputs.Reader
	Events events.EventRecorder
	// Manager is the field manager.
	Manager string
	// choosesUsers reports whether the cluster gives pods a user and a group, as
	// OpenShift does: naming them would be refused.
	choosesUsers bool
	attachments  bool
	predictor    *placement.Predictor
	predictions  predictions
}

// New returns the Deployer of a kind. All kinds share the predictor.
func New(mgr ctrl.Manager, reader *inputs.Reader, predictor *placement.Predictor, names Names) *Deployer {
	_, err := mgr.GetRESTMapper().RESTMapping(securityContextConstraints)
	return &Deployer{
		Client: mgr.GetClient(), Names: names, Live: mgr.GetAPIReader(), Inputs: reader,
		Events: mgr.GetEventRecorder(names.Controller), Manager: "edpm-" + names.Controller,
		choosesUsers: err == nil, attachments: attachments.Installed(mgr.GetRESTMapper()),
		predictor: predictor,
	}
}

// identity is what the pods of a service are known by, whatever else labels them.
// Services and StatefulSets select by it, so that no version may change it.
func (d *Deployer) identity(owner client.Object, component string) map[string]string {
	return map[string]string{ServiceLabel: cmp.Or(component, d.Names.Service), ownerLabel: owner.GetName()}
}

// Conditions are those that Deploy keeps in any case. With a Topology there is
// TopologyReady as well, and with networks NetworkAttachmentsReady.
var Conditions = []condition.Type{topologyv1.PlacementReadyCondition, condition.DeploymentReadyCondition, podifiedv1.PodNodesReadyCondition}

// Phases returns the phases of these Conditions for an object whose function deploys.
func Phases(deploy phase.Func) []phase.Phase {
	return []phase.Phase{
		phase.Of(topologyv1.PlacementReadyCondition), phase.Of(podifiedv1.PodNodesReadyCondition), phase.Of(condition.DeploymentReadyCondition, deploy),
	}
}

// deployment is one service in one reconciliation.
type deployment struct {
	*Deployer
	*Service
	owner    phase.Object
	topology *topologyv1.Topology // nil for none
	// conditions are those of this service alone.
	conditions condition.Conditions
	set        *appsv1.StatefulSet // as it is; nil when there is none
	want       *appsv1.StatefulSet
	pods       []*corev1.Pod // of the set, by ordinal; those of the cache
	// held reports whether the set is left as it is although it is to change.
	held bool
}

// Deploy brings the services of the owner forward, and marks the Conditions on it:
// each is that of the service which is worst. One service does not wait for another.
// The state of the pods that run is reported also when a change cannot be made. The
// error is a *phase.Halt when something is awaited or to be fixed.
func (d *Deployer) Deploy(ctx context.Context, owner phase.Object, services ...*Service) error {
	if err := apply.Finalizer(ctx, d.Client, owner, d.Finalizer, controllerutil.AddFinalizer); err != nil {
		return err
	}
	var all []condition.Conditions
	var halts []*phase.Halt
	for _, service := range services {
		p := &deployment{
			Deployer: d, Service: service.labelled(d.identity(owner, service.Component)), owner: owner,
		}
		var halt *phase.Halt
		if err := p.deploy(ctx); errors.As(err, &halt) {
			p.mark().MarkFalse(halt.Type, halt.Reason, halt.Severity, "%s", halt.Message)
			halts = append(halts, halt)
		} else if err != nil {
			return err
		}
		all = append(all, p.conditions)
	}
	return mergeConditions(owner.GetConditions(), all, halts)
}

// deploy brings one service forward.
func (p *deployment) deploy(ctx context.Context) error {
	if err := p.look(ctx); err != nil {
		return err
	}
	err := p.change(ctx)
	if halt := (*phase.Halt)(nil); err != nil && !errors.As(err, &halt) {
		return err
	}
	p.rollout()
	return errors.Join(err, p.nodes(ctx))
}

func (p *deployment) change(ctx context.Context) error {
	for _, step := range []phase.Func{p.image, p.networks, p.follow, p.place, p.write, p.scale, p.recordTopology} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// mark is where the conditions are.
func (p *deployment) mark() *condition.Conditions { return &p.conditions }

// image checks that every container has an image. The first without one gives the
// program to name, which those that prepare a pod are not.
func (p *deployment) image(context.Context) error {
	for _, container := range slices.Concat(p.Pod.Containers, p.Pod.InitContainers) {
		if container.Image == "" {
			return phase.Stalled(condition.DeploymentReadyCondition, common.ImageMissingReason, "%s", images.Missing(container.Name))
		}
	}
	return nil
}

// networks checks that the networks exist.
func (p *deployment) networks(ctx context.Context) error {
	if len(p.NetworkAttachments) == 0 {
		return nil
	}
	if err := attachments.Check(ctx, p.Client, p.attachments, p.owner.GetNamespace(), p.NetworkAttachments); err != nil {
		return err
	}
	p.mark().MarkTrue(condition.NetworkAttachmentsReadyCondition, "Every network attachment definition exists")
	return nil
}

// look reads the set and its pods, also those that a former set has left.
func (p *deployment) look(ctx context.Context) error {
	key := client.ObjectKey{Namespace: p.owner.GetNamespace(), Name: p.Name}
	set := &appsv1.StatefulSet{}
	err := p.Get(ctx, key, set)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading StatefulSet %s: %w", p.Name, err)
	}
	if err == nil {
		if p.set, err = p.whole(ctx, set); err != nil || p.set == nil {
			return err // the pods of a set that is not ours are not ours either
		}
	}
	list := &corev1.PodList{}
	if err := p.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{setIndex: p.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the pods of StatefulSet %s: %w", p.Name, err)
	}
	p.pods = byOrdinal(p.Name, list.Items)
	return nil
}
