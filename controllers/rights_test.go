package controllers_test

import (
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"

	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm"
	"github.com/edpm-operators/edpm-operators/controllers"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/envtest"
)

// Every manager of this suite has the rights that are deployed, and those on
// Secrets in its own namespace only: a story that needs more fails.

// account is the ServiceAccount that managers of this suite use.
const account = "system:serviceaccount:edpm-operators-system:edpm-operators-manager"

const (
	managerRole = "manager-role"
	secretsRole = "manager-secrets-role"
)

// makeRoles makes the roles of the manager, and grants all but those on Secrets.
func makeRoles() {
	GinkgoHelper()
	file, err := os.Open(envtest.File("config", "rbac", "role.yaml"))
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = file.Close() }()
	docs, made := utilyaml.NewYAMLOrJSONDecoder(file, 4096), []string{}
	for {
		role := &rbacv1.ClusterRole{}
		if docs.Decode(role) != nil {
			break
		}
		if role.Kind == "ClusterRole" {
			made = append(made, role.Name)
			Expect(api.Create(ctx, role)).To(Succeed())
		}
	}
	Expect(made).To(ConsistOf(managerRole, secretsRole))
	Expect(api.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: managerRole}, RoleRef: clusterRole(managerRole), Subjects: subjects(),
	})).To(Succeed())
}

func clusterRole(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
}

func subjects() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: account}}
}

// grantSecrets gives the managers their rights on the Secrets of a namespace.
func grantSecrets(namespace string) {
	GinkgoHelper()
	Expect(api.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secretsRole}, RoleRef: clusterRole(secretsRole), Subjects: subjects(),
	})).To(Succeed())
}

// asManager returns a configuration with the rights of the manager.
func asManager(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.Impersonate.UserName = account
	return config
}

var _ = Describe("Without a right on the Secrets of a namespace", func() {
	It("objects say so and how to grant it, nothing is run, and all goes on once it is granted", func() {
		w := newPlace()
		w.running = startManager(w.ns, w.opts)
		w.make(MakeSecret("ssh-key", w.ns, "ssh-privatekey", "key-1"),
			MakeSecret("cell1-password", w.ns, "ServicePassword", "p"), MakeSecret("cell1-bus", w.ns, "transport_url", "x"), MakeCell("cell1", w.ns).Obj(),
			MakeNova("nova", w.ns, "osp-secret"), MakeSecret("osp-secret", w.ns, "NovaPassword", "p"), MakeSecret("nova-bus", w.ns, "transport_url", "x"),
			w.role("compute").Cell("cell1").Obj(), MakeNode("n", w.ns).Role("compute").Obj())
		for _, object := range []judged{w.node("n"), w.compute("n"), MakeCell("cell1", w.ns).Obj(), MakeNova("nova", w.ns, "")} {
			w.halted(object, condition.InputReadyCondition, edpmv1.SecretForbiddenReason,
				"cannot be read", "no rights on Secrets in namespace "+w.ns, "docs/install.md")
		}
		w.calm()
		Expect(w.runs()).To(BeEmpty())
		grantSecrets(w.ns)
		w.computesReady("n")
		w.condition(MakeNova("nova", w.ns, ""), condition.InputReadyCondition, "True/Ready/")
		w.exactlyOnce()
	})
})

var _ = Describe("A Secret that many nodes share", func() {
	It("is asked for once, by its name, and a change of it reaches them all", func() {
		w := newCloud(func(o *controllers.Options) { o.Engine.Patience = 20 * time.Second })
		w.make(w.role("compute").Obj())
		names := w.makeNodes(30, "compute")
		w.nodesReady(names...)
		Expect(w.wire.secretReads("ssh-key")).To(HaveLen(1))
		w.setSecret("ssh-key", "ssh-privatekey", "")
		for _, n := range names {
			w.condition(w.node(n), condition.InputReadyCondition, "False/SecretKeyMissing/Warning")
		}
		w.setSecret("ssh-key", "ssh-privatekey", "key-1")
		w.nodesReady(names...)
		w.exactlyOnce()
		Expect(w.wire.secretReads("ssh-key")).To(HaveLen(1))
	})
})
