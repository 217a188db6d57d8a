package webhooks_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	hostedv1 "github.com/edpm-operators/edpm-operators/apis/common/hosted"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/dataplane"
	"github.com/edpm-operators/edpm-operators/test/envtest"
	"github.com/edpm-operators/edpm-operators/test/story"
	"github.com/edpm-operators/edpm-operators/webhooks"
)

const (
	computeImage = "registry.example.com/compute@sha256:1"
	libvirtImage = "registry.example.com/libvirt@sha256:2"
	novaEEImage  = "registry.example.com/nova-ee@sha256:3"
	aeeImage     = "registry.example.com/ee@sha256:4"

	// timeout is for what the API server takes up from a watch of its own.
	timeout = 20 * time.Second
)

var (
	env      *envtest.Env
	api      client.Client
	warnings = &warningLog{}
	reads    = &gate{}
	ctx      = context.Background()

	all = []string{"ansibleee", "core", "dataplane", "edpm", "glance", "neutron", "nova", "ocs", "topology"}
)

func TestWebhooks(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Admission")
}

var _ = BeforeSuite(func() {
	for name, image := range map[string]string{
		"NOVA_COMPUTE_IMAGE_URL_DEFAULT": computeImage, "NOVA_LIBVIRT_IMAGE_URL_DEFAULT": libvirtImage,
		"NOVA_ANSIBLE_EE_IMAGE_URL_DEFAULT": novaEEImage, "ANSIBLEEE_IMAGE_URL_DEFAULT": aeeImage,
		"OVN_CONTROLLER_AGENT_IMAGE_URL_DEFAULT": "ovn", "EDPM_NEUTRON_METADATA_AGENT_IMAGE_URL_DEFAULT": "metadata",
	} {
		Expect(os.Setenv("RELATED_IMAGE_"+name, image)).To(Succeed())
	}
	env = envtest.Start(GinkgoT(), envtest.Options{Webhooks: true})

	api = story.Connect(env, func(config *rest.Config) { config.WarningHandler = warnings })

	mgr, err := ctrl.NewManager(env.AsManager(GinkgoT()), env.ManagerOptions())
	Expect(err).NotTo(HaveOccurred())
	reads.Reader = mgr.GetAPIReader()
	Expect(dataplane.Index(ctx, mgr.GetFieldIndexer())).To(Succeed())
	Expect(webhooks.SetupAll(gatedManager{mgr}, all)).To(Succeed())
	env.StartManager(GinkgoT(), mgr)
})

var _ = AfterSuite(func() {
	reads.mu.Lock()
	defer reads.mu.Unlock()
	Expect(reads.secrets).To(BeEmpty(), "admission reads no Secrets: its answers go to whoever can write an object")
})

// gatedManager gives the webhooks the gate to read through.
type gatedManager struct{ ctrl.Manager }

func (gatedManager) GetAPIReader() client.Reader { return reads }

// gate lets a story happen between what a webhook reads and its verdict. It notes
// who reads a Secret: what a verdict cannot see, no answer can tell.
type gate struct {
	client.Reader
	mu    sync.Mutex
	after map[string]func()
	// secrets are those that were read.
	secrets []string
}

// once runs f after the next read of a NovaExternalCompute of that name.
func (g *gate) once(compute string, f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.after = map[string]func(){compute: f}
}

func (g *gate) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := g.Reader.Get(ctx, key, obj, opts...)
	g.note(obj, key.String())
	if _, ok := obj.(*novav1.NovaExternalCompute); ok {
		g.mu.Lock()
		f := g.after[key.Name]
		delete(g.after, key.Name)
		g.mu.Unlock()
		if f != nil {
			f()
		}
	}
	return err
}

func (g *gate) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	g.note(list, "a list")
	return g.Reader.List(ctx, list, opts...)
}

func (g *gate) note(read runtime.Object, name string) {
	gvk, err := apiutil.GVKForObject(read, env.Scheme)
	if err != nil || strings.HasPrefix(gvk.Kind, "Secret") {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.secrets = append(g.secrets, fmt.Sprintf("%T %s (%v)", read, name, err))
	}
}

// warningLog keeps the warnings that the API server sent.
type warningLog struct {
	mu   sync.Mutex
	seen []string
}

func (w *warningLog) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, text)
}

// take returns the warnings since the last call.
func (w *warningLog) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.seen
	w.seen = nil
	return seen
}

// world is a namespace with short ways to tell a story in it.
type world string

func newWorld() world { return world(story.NewNamespace()) }

// annotated is an annotation map with the cell; "-" stands for no annotation.
func annotated(cell string) map[string]string {
	if cell == "-" {
		return nil
	}
	return map[string]string{novav1.CellAnnotation: cell}
}

func (w world) meta(name, cell string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: string(w), Name: name, Annotations: annotated(cell)}
}

func (w world) newRole(name, cell string) *dataplanev1.OpenStackDataPlaneRole {
	return &dataplanev1.OpenStackDataPlaneRole{ObjectMeta: w.meta(name, cell)}
}

func (w world) newNode(name, role, cell string) *dataplanev1.OpenStackDataPlaneNode {
	return &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: w.meta(name, cell), Spec: dataplanev1.OpenStackDataPlaneNodeSpec{Role: role}}
}

func (w world) newCompute(node, cell string) *novav1.NovaExternalCompute {
	return &novav1.NovaExternalCompute{ObjectMeta: w.meta(node, "-"), Spec: novav1.NovaExternalComputeSpec{ServiceSpec: hostedv1.ServiceSpec{DataplaneNodeName: node}, CellName: cell}}
}

func (w world) role(name, cell string)       { GinkgoHelper(); create(w.newRole(name, cell)) }
func (w world) node(name, role, cell string) { GinkgoHelper(); create(w.newNode(name, role, cell)) }
func (w world) compute(node, cell string)    { GinkgoHelper(); create(w.newCompute(node, cell)) }

var create = story.Create

// updateNode changes a stored node and returns what the API server says.
func (w world) updateNode(name string, change func(*dataplanev1.OpenStackDataPlaneNode)) error {
	GinkgoHelper()
	node := story.Get(Default, w.newNode(name, "", "-"))
	change(node)
	return api.Update(ctx, node)
}

// annotateNode sets the annotation of a stored node; "-" removes it.
func (w world) annotateNode(name, cell string) error {
	GinkgoHelper()
	return w.updateNode(name, func(n *dataplanev1.OpenStackDataPlaneNode) { n.Annotations = annotated(cell) })
}

func (w world) moveNode(name, role string) error {
	GinkgoHelper()
	return w.updateNode(name, func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.Role = role })
}

// updateRole changes a stored role and returns what the API server says.
func (w world) updateRole(name string, change func(*dataplanev1.OpenStackDataPlaneRole)) error {
	GinkgoHelper()
	role := story.Get(Default, w.newRole(name, "-"))
	change(role)
	return api.Update(ctx, role)
}

// annotateRole sets the annotation of a stored role; "-" removes it.
func (w world) annotateRole(name, cell string) error {
	GinkgoHelper()
	return w.updateRole(name, func(r *dataplanev1.OpenStackDataPlaneRole) { r.Annotations = annotated(cell) })
}

func (w world) delete(obj client.Object) { GinkgoHelper(); story.Remove(obj) }

// refused expects a rejection as invalid whose message has all the parts.
func refused(err error, parts ...string) {
	GinkgoHelper()
	Expect(err).To(HaveOccurred(), "the write should be refused")
	Expect(apierrors.IsInvalid(err)).To(BeTrue(), fmt.Sprintf("should be refused as invalid, got: %v", err))
	for _, part := range parts {
		Expect(err.Error()).To(ContainSubstring(part))
	}
}
