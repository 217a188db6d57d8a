// Package ovnmetadataagent brings the OVN metadata agent to the hosts of nodes that are
// annotated with an OVN configuration, once ovn-controller runs there. What all services
// on hosts have in common is in internal/hosted. The stories are in
// controllers/ovn_test.go.
package ovnmetadataagent

import (
	"context"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	neutronv1 "github.com/edpm-operators/edpm-operators/apis/neutron/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/hosted"
	"github.com/edpm-operators/edpm-operators/internal/identity"
	"github.com/edpm-operators/edpm-operators/internal/images"
	"github.com/edpm-operators/edpm-operators/internal/neutron"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// +kubebuilder:rbac:groups=neutron.openstack.org,resources=ovnmetadataagents,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=neutron.openstack.org,resources=ovnmetadataagents/status,verbs=patch
// +kubebuilder:rbac:groups=neutron.openstack.org,resources=ovnmetadataagents/finalizers,verbs=update
// +kubebuilder:rbac:groups=neutron.openstack.org,resources=ovncontrollers,verbs=list;watch

var (
	deployStep  = edpm.Step{Name: neutronv1.MetadataStep, Playbook: "edpm.operators.ovn_metadata"}
	cleanupStep = edpm.Step{Name: "ovn-metadata-cleanup", Playbook: "edpm.operators.ovn_metadata_cleanup", Removal: true}
)

// Reconciler of OVNMetadataAgent.
type Reconciler struct{ Images images.Defaults }

// SetupWithManager adds the controllers.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, shared hosted.Shared) error {
	return hosted.Setup(ctx, mgr, shared, neutron.Service(hosted.Service{
		Object: &neutronv1.OVNMetadataAgent{}, Name: "ovn-metadata", Finalizer: neutronv1.OVNMetadataAgentFinalizer,
		Creator: "neutron-ovnmetadataagent", RunnerImage: r.Images.AnsibleEE, Identity: identity.MetadataAgent, Bind: r.bind,
	}, &neutronv1.OVNController{}, watch.SpecOrReadyChanges))
}

// scope is one object in one reconciliation.
type scope struct {
	*hosted.Scope
	*Reconciler
	agent *neutronv1.OVNMetadataAgent
	files map[string][]byte
}

func (r *Reconciler) bind(h *hosted.Scope) hosted.Parts {
	s := &scope{Scope: h, Reconciler: r, agent: h.Object.(*neutronv1.OVNMetadataAgent)}
	return hosted.Parts{
		Inputs: []phase.Phase{phase.Of(neutronv1.OVNConfigReadyCondition, s.readConfig), phase.Of(neutronv1.OVNControllerReadyCondition, s.controllerReady)},
		Images: func() map[string]images.Component {
			return neutron.Images(s.agent, deployStep.Name, s.Images.OVNMetadataAgent)
		},
		Steps:     []hosted.Step{{Step: deployStep, Complete: s.complete}},
		Cleanup:   hosted.Step{Step: cleanupStep},
		Leftovers: "unit edpm_ovn_metadata_agent, network namespaces ovnmeta-*, and /var/lib/openstack/ovn-metadata with the shared secret",
	}
}

// readConfig is the phase that makes the configuration of the agent, which reads its
// files in the order of their names.
func (s *scope) readConfig(ctx context.Context) error {
	config, err := neutron.Read(ctx, s.Scope)
	if err != nil {
		return err
	}
	text, err := config.Metadata()
	s.files = map[string][]byte{"01-ovn-metadata.conf": []byte(text), "02-ovn-metadata-override.conf": []byte(s.agent.Spec.CustomServiceConfig)}
	maps.Copy(s.files, config.Files)
	return err
}

// controllerReady is the phase that waits for ovn-controller, at whose ports the
// networks of the agent end.
func (s *scope) controllerReady(ctx context.Context) error {
	c := &neutronv1.OVNController{}
	err := s.Get(ctx, client.ObjectKeyFromObject(s.agent), c)
	switch {
	case apierrors.IsNotFound(err):
		return phase.Waiting(neutronv1.OVNControllerReadyCondition, neutronv1.OVNControllerMissingReason,
			"OVNController %s does not exist: it is created because of annotation %s of the node or its role; if not, status.services of the node says why", s.agent.Name, neutronv1.OVNAnnotation)
	case err != nil:
		return err
	case !c.IsReady():
		return phase.Waiting(neutronv1.OVNControllerReadyCondition, neutronv1.OVNControllerNotReadyReason,
			"Waiting for OVNController %s to become Ready: see its conditions", c.Name)
	}
	s.agent.Status.Conditions.MarkTrue(neutronv1.OVNControllerReadyCondition, "OVNController %s is Ready", c.Name)
	return nil
}

func (s *scope) complete(t *edpm.Target) {
	t.Vars["edpm_ovn_metadata_image"] = s.agent.Status.Images[neutronv1.ServiceComponent]
	t.Files = s.files
}
