// Package ovncontroller brings ovn-controller to the hosts of nodes that are annotated
// with an OVN configuration, once the nodes are ready. What all services on hosts have
// in common is in internal/hosted. The stories are in controllers/ovn_test.go.
package ovncontroller

import (
	"context"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	neutronv1 "github.com/edpm-operators/edpm-operators/apis/neutron/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/hosted"
	"github.com/edpm-operators/edpm-operators/internal/images"
	"github.com/edpm-operators/edpm-operators/internal/neutron"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// +kubebuilder:rbac:groups=neutron.openstack.org,resources=ovncontrollers,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=neutron.openstack.org,resources=ovncontrollers/status,verbs=patch
// +kubebuilder:rbac:groups=neutron.openstack.org,resources=ovncontrollers/finalizers,verbs=update
// +kubebuilder:rbac:groups=neutron.openstack.org,resources=ovnmetadataagents,verbs=list;watch

var (
	deployStep  = edpm.Step{Name: "ovn-controller", Playbook: "edpm.operators.ovn_controller"}
	cleanupStep = edpm.Step{Name: "ovn-controller-cleanup", Playbook: "edpm.operators.ovn_controller_cleanup", Removal: true}
)

// Reconciler of OVNController.
type Reconciler struct{ Images images.Defaults }

// SetupWithManager adds the controllers.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, shared hosted.Shared) error {
	return hosted.Setup(ctx, mgr, shared, neutron.Service(hosted.Service{
		Object: &neutronv1.OVNController{}, Name: "ovn-controller", Finalizer: neutronv1.OVNControllerFinalizer,
		Creator: "neutron-ovncontroller", RunnerImage: r.Images.AnsibleEE, Bind: r.bind,
	}, &neutronv1.OVNMetadataAgent{}, watch.Freed))
}

// scope is one object in one reconciliation.
type scope struct {
	*hosted.Scope
	*Reconciler
	object *neutronv1.OVNController
	config *neutron.Config
}

func (r *Reconciler) bind(h *hosted.Scope) hosted.Parts {
	s := &scope{Scope: h, Reconciler: r, object: h.Object.(*neutronv1.OVNController)}
	return hosted.Parts{
		Inputs: []phase.Phase{phase.Of(neutronv1.OVNConfigReadyCondition, s.readConfig)},
		Images: func() map[string]images.Component {
			return neutron.Images(s.object, deployStep.Name, s.Images.OVNController)
		},
		Steps:     []hosted.Step{{Step: deployStep, Complete: s.complete}},
		Drain:     []phase.Func{s.agentGone},
		Cleanup:   hosted.Step{Step: cleanupStep},
		Leftovers: "unit edpm_ovn_controller, bridge br-int and the OVN settings of Open vSwitch, and the chassis of the host in OVN's south bound database",
	}
}

// readConfig is the phase that reads the OVN configuration.
func (s *scope) readConfig(ctx context.Context) (err error) {
	s.config, err = neutron.Read(ctx, s.Scope)
	return err
}

func (s *scope) complete(t *edpm.Target) {
	t.Vars["edpm_ovn_controller_image"] = s.object.Status.Images[neutronv1.ServiceComponent]
	t.Vars["edpm_ovn_southbound"] = s.config.Southbound
	t.Files = s.config.Files
}

// agentGone is the phase of a deleted object that waits until the metadata agent is
// removed from the host: the networks of the agent end at ports of ovn-controller.
func (s *scope) agentGone(ctx context.Context) error {
	agent := &neutronv1.OVNMetadataAgent{}
	err := s.Get(ctx, client.ObjectKeyFromObject(s.object), agent)
	if err != nil || s.SkipCleanup() {
		return client.IgnoreNotFound(err)
	}
	// An agent that was created again waits for ovn-controller, and is not on the host.
	if agent.DeletionTimestamp.IsZero() {
		touched, err := s.Engine.Touched(ctx, "OVNMetadataAgent", agent.GetLedger(), agent, neutronv1.MetadataStep)
		if err != nil || !touched {
			return err
		}
	}
	return phase.Waiting(condition.DeploymentReadyCondition, neutronv1.MetadataAgentPresentReason,
		"Deleting: waiting until OVNMetadataAgent %s is removed from the host. It is deleted with its node; delete it if you delete only this object", agent.Name)
}
