package podified

import (
	"context"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	podifiedv1 "github.com/edpm-operators/edpm-operators/apis/common/podified"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",roleName=manager-secrets-role,resources=secrets,verbs=create;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=list;watch;create;patch;delete

// write writes what differs: the configuration first, so that new pods find it.
// The Services select the pods that run and those to come alike, which claim has
// made sure of, so that they never wait for a roll-out.
func (p *deployment) write(ctx context.Context) error {
	if p.held {
		return nil
	}
	for _, step := range []phase.Func{p.claim, p.writeConfig, p.writeServices, p.replace} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if err := p.child(ctx, p.budget(), &policyv1.PodDisruptionBudget{}); err != nil {
		return err
	}
	present := &appsv1.StatefulSet{}
	if err := p.child(ctx, p.want, present); err != nil {
		return err
	}
	p.set, p.Status.Hash = present, map[string]string{podifiedv1.InputHash: p.hash()}
	return p.remake(ctx)
}

// budget lets nodes be drained one pod at a time. A single pod is not kept from
// leaving: no one could drain its node.
func (p *deployment) budget() *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: p.meta(p.Name), Spec: policyv1.PodDisruptionBudgetSpec{
		MaxUnavailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: p.identity(p.owner, p.Component)},
	}}
}

func (p *deployment) writeConfig(ctx context.Context) error {
	name := p.ConfigName()
	present, err := p.Inputs.Generated(ctx, p.owner.GetNamespace(), name)
	if err != nil {
		return inputs.Halt(condition.DeploymentReadyCondition, err)
	}
	secret := &corev1.Secret{ObjectMeta: p.meta(name), Data: p.Config}
	return apply.Halt(condition.DeploymentReadyCondition, apply.Secret(ctx, p.Client, p.Manager, p.owner, secret, present, apply.Own))
}

func (p *deployment) writeServices(ctx context.Context) error {
	for _, service := range p.services() {
		if err := p.child(ctx, service, &corev1.Service{}); err != nil {
			return err
		}
	}
	return nil
}

// services are all that are wanted, complete.
func (p *deployment) services() []*corev1.Service {
	var all []*corev1.Service
	if p.Headless {
		all = append(all, &corev1.Service{ObjectMeta: p.meta(p.Name), Spec: corev1.ServiceSpec{
			Selector: p.identity(p.owner, p.Component), ClusterIP: corev1.ClusterIPNone, Ports: p.ports(),
		}})
	}
	for _, service := range p.Services {
		complete := service.DeepCopy()
		meta := p.meta(service.Name)
		meta.Annotations, meta.Labels = service.Annotations, merge(p.Labels, service.Labels)
		complete.ObjectMeta, complete.Spec.Selector = meta, p.identity(p.owner, p.Component)
		all = append(all, complete)
	}
	return all
}

// ports that the containers have.
func (p *deployment) ports() []corev1.ServicePort {
	var ports []corev1.ServicePort
	for _, c := range p.Pod.Containers {
		for _, port := range c.Ports {
			ports = append(ports, TCP(port.Name, port.ContainerPort))
		}
	}
	return ports
}

// TCP returns a port of a Service that leads to the same port of its pods. The
// target is said although it is the default: without a value it would be sent as
// 0, and so differ for ever from what the API server makes of it.
func TCP(name string, port int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: port, TargetPort: intstr.FromInt32(port), Protocol: corev1.ProtocolTCP}
}

// child writes one child. What the API server refuses, or belongs to something
// else, is for a person to fix.
func (p *deployment) child(ctx context.Context, desired, present client.Object) error {
	err := apply.Child(ctx, p.Client, p.Manager, p.owner, desired, present, apply.Own)
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
		return phase.Stalled(condition.DeploymentReadyCondition, podifiedv1.RefusedReason, "The API server rejects it: %v", err)
	}
	return apply.Halt(condition.DeploymentReadyCondition, err)
}

func merge(base, more map[string]string) map[string]string {
	merged := map[string]string{}
	for _, m := range []map[string]string{more, base} { // what selects wins
		for k, v := range m {
			merged[k] = v
		}
	}
	return merged
}
