// Package webhooks serves admission for all kinds. What is called when is decided in
// internal/kinds, of which make manifests makes config/webhook/manifests.yaml, and
// config/overlays/ocs/webhooks.yaml for the kind that is not deployed everywhere.
package webhooks

import (
	"context"
	"net/http"
	"slices"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/edpm-operators/edpm-operators/internal/images"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/nova/options"
	"github.com/edpm-operators/edpm-operators/webhooks/ansibleee"
	"github.com/edpm-operators/edpm-operators/webhooks/core"
	"github.com/edpm-operators/edpm-operators/webhooks/dataplane"
	"github.com/edpm-operators/edpm-operators/webhooks/edpm"
	"github.com/edpm-operators/edpm-operators/webhooks/glance"
	"github.com/edpm-operators/edpm-operators/webhooks/neutron"
	"github.com/edpm-operators/edpm-operators/webhooks/nova"
	"github.com/edpm-operators/edpm-operators/webhooks/ocs"
	"github.com/edpm-operators/edpm-operators/webhooks/topology"
)

// SetupAll serves the webhooks of the operators. To those of operators that do not
// run it says yes and changes nothing: the configuration that is deployed may name
// them, and their kinds may belong to another user. Verdicts read from the API
// server; the warning of nodes with one address reads the cache and its nodes.Index, and what
// images know of options is read when the cache shows another version of it.
func SetupAll(mgr ctrl.Manager, operators []string) error {
	mgr = guardedManager{mgr}
	reader, defaults := mgr.GetAPIReader(), images.Env()
	known := options.NewFinder(inputs.NewConfigMapReader(mgr.GetCache(), reader))
	setups := map[string][]func() error{
		"nova": {
			func() error { return nova.SetupCellRuleWithManager(mgr, reader) },
			func() error { return nova.SetupNovaExternalComputeWithManager(mgr, reader, defaults, known) },
			func() error { return nova.SetupNovaWithManager(mgr, known) },
			func() error { return nova.SetupNovaCellWithManager(mgr, known) },
			func() error { return nova.SetupNovaComputeWithManager(mgr, known) },
		},
		"neutron": {
			func() error { return neutron.SetupOVNControllerWithManager(mgr, defaults) },
			func() error { return neutron.SetupOVNMetadataAgentWithManager(mgr, defaults) },
		},
		"glance": {
			func() error { return glance.SetupGlanceWithManager(mgr) },
			func() error { return glance.SetupGlanceAPIWithManager(mgr) },
		},
		"core": {func() error { return core.SetupOpenStackControlPlaneWithManager(mgr, reader, known) }},
		"dataplane": {
			func() error { return dataplane.SetupOpenStackDataPlaneWithManager(mgr) },
			func() error { return dataplane.SetupOpenStackDataPlaneRoleWithManager(mgr) },
			func() error { return dataplane.SetupOpenStackDataPlaneNodeWithManager(mgr) },
			func() error { return dataplane.SetupOpenStackDataPlaneServiceWithManager(mgr) },
		},
		"edpm": {
			func() error { return edpm.SetupEDPMServiceClassWithManager(mgr) },
			func() error { return edpm.SetupEDPMServiceWithManager(mgr) },
		},
		"ansibleee": {func() error { return ansibleee.SetupOpenStackAnsibleEEWithManager(mgr, defaults) }},
		"topology":  {func() error { return topology.SetupTopologyWithManager(mgr) }},
		"ocs":       {func() error { return ocs.SetupStorageClusterWithManager(mgr, reader) }},
	}
	for _, operator := range operators {
		for _, setup := range setups[operator] {
			if err := setup(); err != nil {
				return err
			}
		}
	}
	mgr.GetWebhookServer().Register("/", abstain(operators))
	return nil
}

// abstain allows whatever is asked about kinds of other operators. A path has the
// name of its operator as the second word: /validate-nova-cell-....
func abstain(operators []string) http.Handler {
	yes := &admission.Webhook{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		return admission.Allowed("")
	})}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		words := strings.Split(r.URL.Path, "-")
		if len(words) < 2 || slices.Contains(operators, words[1]) {
			http.NotFound(w, r)
			return
		}
		yes.ServeHTTP(w, r)
	})
}
