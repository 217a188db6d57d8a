// Package webhooks serves admission for all kinds. What is called when is
// config/webhook/manifests.yaml, and config/overlays/ocs/webhooks.yaml for the
// kind that is not deployed everywhere.
package webhooks

import (
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/edpm-operators/edpm-operators/internal/images"
	"github.com/edpm-operators/edpm-operators/webhooks/ansibleee"
	"github.com/edpm-operators/edpm-operators/webhooks/core"
	"github.com/edpm-operators/edpm-operators/webhooks/dataplane"
	"github.com/edpm-operators/edpm-operators/webhooks/glance"
	"github.com/edpm-operators/edpm-operators/webhooks/nova"
	"github.com/edpm-operators/edpm-operators/webhooks/ocs"
	"github.com/edpm-operators/edpm-operators/webhooks/topology"
)

// SetupAll serves the webhooks of every kind, whichever operators this manager
// runs: one configuration is deployed for all, and the API server would refuse
// writes whose webhook nobody serves. Validation reads from the API server.
func SetupAll(mgr ctrl.Manager) error {
	reader, defaults := mgr.GetAPIReader(), images.Env()
	for _, setup := range []func() error{
		func() error { return nova.SetupCellRuleWithManager(mgr, reader) },
		func() error { return nova.SetupNovaExternalComputeWithManager(mgr, reader, defaults) },
		func() error { return nova.SetupNovaWithManager(mgr) },
		func() error { return nova.SetupNovaCellWithManager(mgr) },
		func() error { return nova.SetupNovaComputeWithManager(mgr) },
		func() error { return glance.SetupGlanceWithManager(mgr) },
		func() error { return glance.SetupGlanceAPIWithManager(mgr) },
		func() error { return core.SetupOpenStackControlPlaneWithManager(mgr, reader) },
		func() error { return dataplane.SetupOpenStackDataPlaneWithManager(mgr) },
		func() error { return dataplane.SetupOpenStackDataPlaneRoleWithManager(mgr) },
		func() error { return dataplane.SetupOpenStackDataPlaneNodeWithManager(mgr, reader) },
		func() error { return dataplane.SetupOpenStackDataPlaneServiceWithManager(mgr) },
		func() error { return ansibleee.SetupOpenStackAnsibleEEWithManager(mgr, defaults) },
		func() error { return topology.SetupTopologyWithManager(mgr) },
		func() error { return ocs.SetupStorageClusterWithManager(mgr, reader) },
	} {
		if err := setup(); err != nil {
			return err
		}
	}
	return nil
}
