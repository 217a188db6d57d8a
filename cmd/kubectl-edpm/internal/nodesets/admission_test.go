package nodesets

import (
	"bytes"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/internal/dataplane"
	"github.com/edpm-operators/edpm-operators/test/envtest"
	"github.com/edpm-operators/edpm-operators/webhooks"
)

// What is written of each sample is taken as it is by the API server, with strict field
// validation, the rules of the resource definitions and the webhooks.
func TestAdmissionTakesWhatIsWrittenOfSamples(t *testing.T) {
	env := admission(t)
	for _, file := range samples(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			applyAll(t, env, planOfSample(t, file))
		})
	}
	t.Run("computes with a configuration", func(t *testing.T) {
		applyAll(t, env, planOf(t, nodeSetOf("s", "preProvisioned: true\nnodes: {n0: {ansible: {ansibleHost: 192.0.2.1}}}\n")+
			mapOf("nova-extra-config", "25-nova-extra.conf: |\n  [DEFAULT]\n  host = a\n  [compute]\n  cpu_shared_set = 2,6\n")+
			deploymentOf("d", "nodeSets: [s]\nansibleJobNodeSelector: {zone: a}")))
	})
}

// admission is an API server with the webhooks that are deployed.
func admission(t *testing.T) *envtest.Env {
	t.Helper()
	for _, image := range []string{"NOVA_COMPUTE", "NOVA_LIBVIRT", "NOVA_ANSIBLE_EE", "ANSIBLEEE", "OVN_CONTROLLER_AGENT", "EDPM_NEUTRON_METADATA_AGENT"} {
		t.Setenv("RELATED_IMAGE_"+image+"_IMAGE_URL_DEFAULT", "registry.example.com/image:1")
	}
	env := envtest.Start(t, envtest.Options{Webhooks: true})
	mgr, err := ctrl.NewManager(env.AsManager(t), env.ManagerOptions())
	if err != nil {
		t.Fatal(err)
	}
	if err := dataplane.Index(t.Context(), mgr.GetFieldIndexer()); err != nil {
		t.Fatal(err)
	}
	if err := webhooks.SetupAll(mgr, []string{"ansibleee", "core", "dataplane", "edpm", "glance", "neutron", "nova", "ocs", "topology"}); err != nil {
		t.Fatal(err)
	}
	env.StartManager(t, mgr)
	return env
}

// applyAll applies the objects in their order, in a namespace of their own.
func applyAll(t *testing.T, env *envtest.Env, plan *Plan) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "import-"}}
	if err := env.Client.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	for _, o := range plan.Objects {
		o = o.DeepCopy()
		o.SetNamespace(namespace.Name)
		text := &bytes.Buffer{}
		if err := Print(text, []*unstructured.Unstructured{o}); err != nil {
			t.Fatal(err)
		}
		err := env.Client.Patch(t.Context(), o, client.RawPatch(types.ApplyYAMLPatchType, text.Bytes()), client.FieldOwner("person"), client.FieldValidation(metav1.FieldValidationStrict))
		if err != nil {
			t.Errorf("%s %s is refused: %v", o.GetKind(), o.GetName(), err)
		}
	}
}
