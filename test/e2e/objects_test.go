package e2e

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
)

// keySecret is the Secret with the ssh key that the samples name.
const keySecret = "dataplane-ansible-ssh-private-key-secret"

// secretWords are words that occur in the secrets of the tests and nowhere else.
var secretWords = struct {
	sync.Mutex
	words map[string]string // word -> what it is part of
}{words: map[string]string{}}

// newSecret returns a value that holds what is special to oslo.config, with a
// word in it by which it is found wherever it leaks to.
func newSecret(of string) string {
	raw := make([]byte, 8)
	_, _ = rand.Read(raw) // never fails (crypto/rand)
	word := "w0rd" + hex.EncodeToString(raw)
	noteSecret(word, of)
	return "s3cr$t-" + word
}

func noteSecret(word, of string) {
	secretWords.Lock()
	defer secretWords.Unlock()
	secretWords.words[word] = of
}

func named(ns, name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: ns, Name: name} }

func newSecretObject(ns, name string, data map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: named(ns, name), StringData: data}
}

// sshKey returns the Secret with the key that the hosts let in.
func sshKey(ns string) *corev1.Secret {
	key, err := cluster.PrivateKey()
	Expect(err).NotTo(HaveOccurred())
	notePrivateKey(string(key))
	return newSecretObject(ns, keySecret, map[string]string{"ssh-privatekey": string(key)})
}

// notePrivateKey notes the lines of a key that are its own: the first of an
// OpenSSH key are the same in all.
func notePrivateKey(pem string) {
	lines := strings.Split(strings.TrimSpace(pem), "\n")
	for i, line := range lines {
		if i >= 2 && len(line) >= 16 && !strings.HasPrefix(line, "---") {
			noteSecret(line, "an ssh key")
		}
	}
}

const (
	passwordSecret = "osp-secret"
	novaName       = "nova"
)

func busSecret(cell string) string {
	return fmt.Sprintf("rabbitmq-transport-url-%s-%s-transport", novaName, cell)
}

func transportURL(cell string) string {
	return fmt.Sprintf("rabbit://nova:%s@127.0.0.1:5672/", newSecret("the transport URL of "+cell))
}

// control is what stands for the control plane in a namespace: a Nova with two
// cells, their Secrets, the ssh key, and who logs in, which the samples do not say.
func control(ns string) []client.Object {
	return []client.Object{
		&corev1.ConfigMap{ObjectMeta: named(ns, "openstack-aee-default-env"), Data: map[string]string{"ANSIBLE_REMOTE_USER": "cloud-admin"}},
		sshKey(ns),
		newSecretObject(ns, passwordSecret, map[string]string{"NovaPassword": newSecret("the password of nova")}),
		newSecretObject(ns, busSecret("cell1"), map[string]string{"transport_url": transportURL("cell1")}),
		newSecretObject(ns, busSecret("cell2"), map[string]string{"transport_url": transportURL("cell2")}),
		&novav1.Nova{ObjectMeta: named(ns, novaName), Spec: novav1.NovaSpec{
			Secret: passwordSecret, KeystoneAuthURL: "http://127.0.0.1:5000",
			CellTemplates: map[string]novav1.NovaCellTemplate{"cell1": {HasAPIAccess: true}, "cell2": {HasAPIAccess: true}},
		}},
	}
}

// quickService is a service of phase 0 that notes its runs like the real ones
// and does next to nothing, for stories in which phase 0 is not the point. It
// fails where the file /etc/e2e-broken is.
func quickService(ns, name string) *dataplanev1.OpenStackDataPlaneService {
	return &dataplanev1.OpenStackDataPlaneService{ObjectMeta: named(ns, name), Spec: dataplanev1.OpenStackDataPlaneServiceSpec{Play: quickPlay}}
}

const quickPlay = `- name: Do next to nothing
  hosts: all
  become: true
  gather_facts: false
  tasks:
    - name: Note the start
      ansible.builtin.include_role:
        name: edpm.operators.edpm_audit
    - name: Check that the host is whole
      ansible.builtin.command: test ! -e /etc/e2e-broken
      changed_when: false
    - name: Note the end
      ansible.builtin.include_role:
        name: edpm.operators.edpm_audit
      vars:
        edpm_audit_event: end
`

// slowPlay is quickPlay with a pause, in which something can happen to the run.
var slowPlay = strings.Replace(quickPlay, "command: test", "shell: sleep 10; test", 1)

func newRole(ns, name string, services ...string) *dataplanev1.OpenStackDataPlaneRole {
	return &dataplanev1.OpenStackDataPlaneRole{ObjectMeta: named(ns, name), Spec: dataplanev1.OpenStackDataPlaneRoleSpec{
		NodeTemplate: dataplanev1.NodeSection{AnsibleSSHPrivateKeySecret: keySecret},
		Services:     services,
	}}
}

func newNode(ns, role string, host lab.Host) *dataplanev1.OpenStackDataPlaneNode {
	return &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: named(ns, host.Name), Spec: dataplanev1.OpenStackDataPlaneNodeSpec{
		Role: role, HostName: host.Name, AnsibleHost: host.IP,
	}}
}

// inCell annotates an object with a cell.
func inCell[T client.Object](obj T, cell string) T {
	return annotated(obj, novav1.CellAnnotation, cell)
}

func annotated[T client.Object](obj T, key, value string) T {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	obj.SetAnnotations(annotations)
	return obj
}

func jsonVars(vars map[string]any) *apiextensionsv1.JSON {
	text, err := json.Marshal(vars)
	Expect(err).NotTo(HaveOccurred())
	return &apiextensionsv1.JSON{Raw: text}
}

func create(ctx context.Context, objects ...client.Object) {
	for _, obj := range objects {
		ExpectWithOffset(1, k8s.Create(ctx, obj)).To(Succeed(), "creating %T %s", obj, obj.GetName())
	}
}

// change reads an object, changes it and writes the difference.
func change[T client.Object](ctx context.Context, obj T, mutate func(T)) error {
	if err := k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		return err
	}
	before := obj.DeepCopyObject().(T)
	mutate(obj)
	return k8s.Patch(ctx, obj, client.MergeFrom(before))
}

func mustChange[T client.Object](ctx context.Context, obj T, mutate func(T)) {
	ExpectWithOffset(1, change(ctx, obj, mutate)).To(Succeed())
}

// rerun asks for one more run.
func rerun(ctx context.Context, obj client.Object, token string) {
	mustChange(ctx, obj, func(o client.Object) { annotated(o, common.RerunAnnotation, token) })
}

func node(ctx context.Context, ns, name string) *dataplanev1.OpenStackDataPlaneNode {
	obj := &dataplanev1.OpenStackDataPlaneNode{}
	ExpectWithOffset(1, k8s.Get(ctx, types.NamespacedName{Namespace: ns, Name: name}, obj)).To(Succeed())
	return obj
}

func compute(ctx context.Context, ns, name string) *novav1.NovaExternalCompute {
	obj := &novav1.NovaExternalCompute{}
	ExpectWithOffset(1, k8s.Get(ctx, types.NamespacedName{Namespace: ns, Name: name}, obj)).To(Succeed())
	return obj
}

// newNodeKey and the like are objects of which only the name is known.
func nodeNamed(ns, name string) *dataplanev1.OpenStackDataPlaneNode {
	return &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: named(ns, name)}
}

func computeNamed(ns, name string) *novav1.NovaExternalCompute {
	return &novav1.NovaExternalCompute{ObjectMeta: named(ns, name)}
}

func roleNamed(ns, name string) *dataplanev1.OpenStackDataPlaneRole {
	return &dataplanev1.OpenStackDataPlaneRole{ObjectMeta: named(ns, name)}
}

func secretNamed(ns, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: named(ns, name)}
}
