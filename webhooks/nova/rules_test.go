package nova

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/edpm-operators/edpm-operators/apis/common/hosted"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/images"
)

func fieldsOf(errs field.ErrorList) []string {
	var all []string
	for _, err := range errs {
		all = append(all, err.Field)
	}
	return all
}

// broken is a service template with a mistake in every field that is checked.
func broken(replicas int32) novav1.NovaServiceTemplate {
	return novav1.NovaServiceTemplate{CustomServiceConfig: "x", NetworkAttachments: []string{"N"}, Replicas: ptr.To(replicas)}
}

func endpoint(t novav1.NovaServiceTemplate) novav1.NovaEndpointTemplate {
	return novav1.NovaEndpointTemplate{NovaServiceTemplate: t, TLS: &novav1.NovaEndpointTLS{SecretName: "S"}}
}

var brokenServices = []string{
	"conductorServiceTemplate.customServiceConfig", "conductorServiceTemplate.networkAttachments[0]",
	"metadataServiceTemplate.customServiceConfig", "metadataServiceTemplate.networkAttachments[0]", "metadataServiceTemplate.tls.secretName",
	"noVNCProxyServiceTemplate.customServiceConfig", "noVNCProxyServiceTemplate.networkAttachments[0]", "noVNCProxyServiceTemplate.tls.secretName",
}

func TestEveryCheckedFieldIsNamed(t *testing.T) {
	cell := &novav1.NovaCell{ObjectMeta: metav1.ObjectMeta{Name: "cell0"}, Spec: novav1.NovaCellSpec{
		Secret: "S", CellMessageBusSecretName: "S", KeystoneAuthURL: "x", NoVNCProxyBaseURL: "x",
		ConductorServiceTemplate: novav1.NovaConductorTemplate{NovaServiceTemplate: broken(1)}, MetadataServiceTemplate: endpoint(broken(1)), NoVNCProxyServiceTemplate: endpoint(broken(1)),
	}}
	template := novav1.NovaCellTemplate{
		CellMessageBusSecretName: "S", NoVNCProxyBaseURL: "x",
		ConductorServiceTemplate: novav1.NovaConductorTemplate{NovaServiceTemplate: broken(1)}, MetadataServiceTemplate: endpoint(broken(1)), NoVNCProxyServiceTemplate: endpoint(broken(1)),
	}
	nova := &novav1.Nova{Spec: novav1.NovaSpec{
		Secret: "S", KeystoneAuthURL: "x", APIServiceTemplate: endpoint(broken(1)), SchedulerServiceTemplate: broken(1), CellTemplates: map[string]novav1.NovaCellTemplate{"cell0": template, "Cell1": {}},
	}}
	compute := &novav1.NovaExternalCompute{Spec: novav1.NovaExternalComputeSpec{CellName: "C", ServiceSpec: hostedv1.ServiceSpec{
		CustomServiceConfig: "x", InventoryConfigMapName: "I", SSHKeySecretName: "S", NetworkAttachments: []string{"N"},
	}}}
	tests := map[string]struct{ got, want []string }{
		"cell": {fieldsOf(cellErrors(cell)), append(append(
			under("spec", "secret", "cellMessageBusSecretName", "keystoneAuthURL", "noVNCProxyBaseURL"),
			under("spec", brokenServices...)...), "spec.metadataServiceTemplate.replicas")},
		"nova": {fieldsOf(novaErrors(nova)), append(append(
			under("spec", "secret", "keystoneAuthURL",
				"apiServiceTemplate.customServiceConfig", "apiServiceTemplate.networkAttachments[0]", "apiServiceTemplate.tls.secretName",
				"schedulerServiceTemplate.customServiceConfig", "schedulerServiceTemplate.networkAttachments[0]", "cellTemplates[Cell1]", "cellTemplates[cell0].cellMessageBusSecretName", "cellTemplates[cell0].noVNCProxyBaseURL"),
			under("spec.cellTemplates[cell0]", brokenServices...)...), "spec.cellTemplates[cell0].metadataServiceTemplate.replicas")},
		"compute":    {fieldsOf(computeErrors(compute)), under("spec", "customServiceConfig", "inventoryConfigMapName", "sshKeySecretName", "networkAttachments[0]", "cellName")},
		"empty cell": {fieldsOf(cellErrors(&novav1.NovaCell{})), nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.got); diff != "" {
				t.Errorf("fields with errors (-want +got):\n%s", diff)
			}
		})
	}
}

func under(at string, fields ...string) []string {
	var all []string
	for _, f := range fields {
		all = append(all, at+"."+f)
	}
	return all
}

func TestMetadataInCell0(t *testing.T) {
	tests := map[string]struct {
		cell     string
		replicas *int32
		want     bool
	}{
		"cell0 without a number":  {"cell0", nil, false},
		"cell0 with none":         {"cell0", ptr.To[int32](0), false},
		"cell0 with one":          {"cell0", ptr.To[int32](1), true},
		"any other cell with one": {"cell1", ptr.To[int32](1), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			errs := cellServices{metadata: novav1.NovaEndpointTemplate{NovaServiceTemplate: novav1.NovaServiceTemplate{Replicas: tt.replicas}}}.errors(field.NewPath("spec"), "ns", tt.cell)
			if got := len(errs) > 0; got != tt.want {
				t.Errorf("refused = %v, want %v: %v", got, tt.want, errs)
			}
		})
	}
}

func TestAComputeOfIronicIsOneForEachShard(t *testing.T) {
	const shard = "[ironic]\nshard = a\n"
	tests := map[string]struct {
		driver, config string
		replicas       int32
		err, warning   string
	}{
		"one service":                         {novav1.IronicDriver, "", 1, "", ""},
		"one service with a shard":            {novav1.IronicDriver, shard, 1, "", ""},
		"two that share the nodes":            {novav1.IronicDriver, "", 2, "", "spec.replicas: 2 services share the nodes of ironic"},
		"two with one shard":                  {novav1.IronicDriver, shard, 2, "spec.replicas: Invalid value: 2: several services cannot share a shard of ironic: use a NovaCompute with replicas: 1", ""},
		"two with no shard in the end":        {novav1.IronicDriver, shard + "shard =\n", 2, "", "share the nodes"},
		"two of another driver":               {"fake.FakeDriver", "", 2, "", ""},
		"two whose configuration is not read": {novav1.IronicDriver, "shard", 2, "spec.customServiceConfig", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			compute := &novav1.NovaCompute{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: novav1.NovaComputeSpec{
				CellName: "a", ComputeDriver: tt.driver, Replicas: &tt.replicas, CustomServiceConfig: tt.config,
			}}
			warnings, err := podifiedComputeRules.ValidateCreate(t.Context(), compute)
			if got := fmt.Sprint(err); !strings.Contains(got, tt.err) || (tt.err == "") != (err == nil) {
				t.Errorf("refused with %q, want %q in it", got, tt.err)
			}
			if got := strings.Join(warnings, " "); !strings.Contains(got, tt.warning) || (tt.warning == "") != (got == "") {
				t.Errorf("warns %q, want %q in it", got, tt.warning)
			}
			if warnings, err := podifiedComputeRules.ValidateUpdate(t.Context(), compute, compute); err != nil || len(warnings) > 0 {
				t.Errorf("a write that changes nothing: %v, %v", warnings, err)
			}
		})
	}
}

func TestShortName(t *testing.T) {
	tests := map[string]string{
		"":                      "",
		"cell1":                 "",
		strings.Repeat("c", 35): "",
		strings.Repeat("c", 36): "should be shorter than 36 characters",
		"cell.1":                `use at most 63 lower case letters, digits and "-"`,
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			if got := text(shortName(field.NewPath("f"), name)); !strings.Contains(got, want) || (want == "") != (got == "") {
				t.Errorf("shortName(%q) = %q, want %q in it", name, got, want)
			}
		})
	}
}

// failing answers no question.
type failing struct{ client.Reader }

func (failing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("no answer")
}

func (failing) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("no answer")
}

func TestAWriteIsRefusedWhenItsCellCannotBeFound(t *testing.T) {
	cells := cellReader{failing{}, failing{}}
	meta := metav1.ObjectMeta{Name: "x", Annotations: map[string]string{novav1.CellAnnotation: "a"}}
	node := &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: meta, Spec: dataplanev1.OpenStackDataPlaneNodeSpec{Role: "r"}}
	role := &dataplanev1.OpenStackDataPlaneRole{ObjectMeta: meta}
	compute := &novav1.NovaExternalCompute{ObjectMeta: meta, Spec: novav1.NovaExternalComputeSpec{CellName: "a", ServiceSpec: hostedv1.ServiceSpec{DataplaneNodeName: "x"}}}
	for name, write := range map[string]func() error{
		"node": func() error { _, err := nodeCell{cells}.ValidateCreate(t.Context(), node); return err },
		"role": func() error { _, err := roleCell{cells}.ValidateCreate(t.Context(), role); return err },
		"compute": func() error {
			_, err := newComputeValidator(cells, nil).ValidateCreate(t.Context(), compute)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := write(); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "no answer") {
				t.Errorf("want an internal error with its cause, got %v", err)
			}
		})
	}
}

func TestImagesThatAreSetAreKept(t *testing.T) {
	compute := &novav1.NovaExternalCompute{Spec: novav1.NovaExternalComputeSpec{NovaLibvirtContainerImage: "mine"}}
	if err := (computeImages{defaults: images.Defaults{NovaCompute: "c", NovaLibvirt: "l", NovaAnsibleEE: "e"}}).Default(t.Context(), compute); err != nil {
		t.Fatal(err)
	}
	want := novav1.NovaExternalComputeSpec{
		ServiceSpec:               hostedv1.ServiceSpec{AnsibleEEContainerImage: "e"},
		NovaComputeContainerImage: "c", NovaLibvirtContainerImage: "mine",
	}
	if diff := cmp.Diff(want, compute.Spec); diff != "" {
		t.Errorf("Default (-want +got):\n%s", diff)
	}
}
