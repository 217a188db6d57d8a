package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// smallConfig is a config of two operators, of which cell watches host's kind.
func smallConfig(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func bundleOf(t *testing.T, operators ...string) (*v1alpha1.ClusterServiceVersion, []*unstructured.Unstructured) {
	t.Helper()
	return bundleFrom(t, smallConfig(t), operators...)
}

func bundleFrom(t *testing.T, config string, operators ...string) (*v1alpha1.ClusterServiceVersion, []*unstructured.Unstructured) {
	t.Helper()
	in, err := readInput(strings.NewReader(config), operators)
	if err != nil {
		t.Fatal(err)
	}
	o := options{operators: "cell", pkg: "part", channel: "candidate", version: "0.2.0", replaces: "0.1.0", image: "registry.example.org/manager:v2", runner: "registry.example.org/runner:v2",
		images: relatedImagesOf([]string{"RELATED_IMAGE_CELL_IMAGE_URL_DEFAULT=registry.example.org/cell@sha256:1", "HOME=/root"})}
	objects, err := in.manifests(o, []byte("<svg/>"))
	if err != nil {
		t.Fatal(err)
	}
	csv := &v1alpha1.ClusterServiceVersion{}
	if err := decode(objects[0], &csv); err != nil {
		t.Fatal(err)
	}
	return csv, objects
}

func TestABundleOfOneOperator(t *testing.T) {
	csv, objects := bundleOf(t, "cell")

	var files []string
	for _, obj := range objects {
		files = append(files, fileName("part", obj))
		if obj.GetNamespace() != "" {
			t.Errorf("%s %s is in namespace %s: OLM knows where", obj.GetKind(), obj.GetName(), obj.GetNamespace())
		}
	}
	same(t, "files", files, []string{
		"part.clusterserviceversion.yaml", "cell.example.org_cells.yaml", "suite-cell-viewer_clusterrole.yaml", "part-metrics-reader_clusterrole.yaml", "part-metrics_service.yaml",
	})
	same(t, "name", csv.Name+" replaces "+csv.Spec.Replaces, "part.v0.2.0 replaces part.v0.1.0")
	same(t, "owned", kindNames(csv.Spec.CustomResourceDefinitions.Owned), []string{"Cell"})
	same(t, "required", kindNames(csv.Spec.CustomResourceDefinitions.Required), []string{"Host"})

	deployment := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0]
	manager := deployment.Spec.Template.Spec.Containers[0]
	same(t, "arguments", manager.Args, []string{"--leader-elect", "--operators=cell", "--leader-election-id=part"})
	same(t, "images", csv.Spec.RelatedImages, []v1alpha1.RelatedImage{
		{Name: "manager", Image: "registry.example.org/manager:v2"}, {Name: "ansibleee", Image: "registry.example.org/runner:v2"}, {Name: "cell", Image: "registry.example.org/cell@sha256:1"},
	})
	pods := map[string]string{"component": "manager", "app.kubernetes.io/instance": "part"}
	same(t, "labels of the pods", deployment.Spec.Template.Labels, pods)
	same(t, "selector of the pods", deployment.Spec.Selector.MatchLabels, pods)
	selector, _, _ := unstructured.NestedStringMap(objects[len(objects)-1].Object, "spec", "selector")
	same(t, "selector of the Service", selector, pods)
	same(t, "account", csv.Spec.InstallStrategy.StrategySpec.ClusterPermissions[0].ServiceAccountName, "part-manager")

	var paths []string
	for _, hook := range csv.Spec.WebhookDefinitions {
		paths = append(paths, string(hook.Type)+" "+*hook.WebhookPath)
		same(t, "where "+hook.GenerateName+" is served", hook.DeploymentName+" "+hook.TargetPort.String(), "part-manager 9443")
	}
	same(t, "webhooks", paths, []string{"MutatingAdmissionWebhook /mutate-cell-example-org-v1-cell", "ValidatingAdmissionWebhook /validate-cell-rule-host"})
}

func TestABundleRequiresNoKindThatIsOnlyWatched(t *testing.T) {
	config := strings.ReplaceAll(smallConfig(t), "resources: [hosts], verbs: [get, list, watch]", "resources: [hosts], verbs: [list, watch]")
	csv, _ := bundleFrom(t, config, "cell")
	same(t, "required", kindNames(csv.Spec.CustomResourceDefinitions.Required), nil)
}

func TestABundleOfAllOperatorsRequiresNothing(t *testing.T) {
	csv, _ := bundleOf(t, "cell", "host")
	same(t, "owned", kindNames(csv.Spec.CustomResourceDefinitions.Owned), []string{"Cell", "Host"})
	same(t, "required", kindNames(csv.Spec.CustomResourceDefinitions.Required), nil)
}

func kindNames(kinds []v1alpha1.CRDDescription) []string {
	var names []string
	for _, kind := range kinds {
		names = append(names, kind.Kind)
	}
	return names
}

func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestInputThatIsRefused(t *testing.T) {
	tests := map[string]struct {
		more, operator, want string
	}{
		"an operator that does not exist":           {"", "cel", `operator "cel" has no kinds in config/crd`},
		"a kind of which no one knows what to make": {"\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\n", "cell", "no bundle has a /v1, Kind=Pod"},
		"a field that the type does not have":       {"\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: manager-role}\nrule: []\n", "cell", `unknown field "rule"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := readInput(strings.NewReader(smallConfig(t)+tt.more), []string{tt.operator})
			mention(t, err, tt.want)
		})
	}
	_, err := readInput(strings.NewReader("kind: Namespace\napiVersion: v1\n"), nil)
	mention(t, err, "config/olm has no ")
}
