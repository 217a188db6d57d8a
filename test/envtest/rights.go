package envtest

import (
	"context"
	"errors"
	"io"
	"os"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// managerAccount is the ServiceAccount of the manager where it is deployed.
const managerAccount = "system:serviceaccount:edpm-operators-system:edpm-operators-manager"

// secretsRole is the ClusterRole of the manager in the namespaces whose Secrets it may read.
const secretsRole = "manager-secrets-role"

// AsManager returns a configuration that has the rights of the deployed manager
// and no others: a story that needs more fails. It has those on Secrets in the
// namespaces of [Env.GrantSecrets] only, and those of the ClusterRoles of more files. What is
// asked with it is noted in [Env.Requests]. Each process of a suite calls it once.
func (e *Env) AsManager(t T, more ...string) *rest.Config {
	t.Helper()
	for _, file := range append([]string{File("config", "rbac", "role.yaml")}, more...) {
		if err := e.makeRoles(file); err != nil {
			t.Fatalf("making the roles of the manager: %v", err)
		}
	}
	config := rest.CopyConfig(e.Config)
	config.QPS = -1
	config.Impersonate.UserName = managerAccount
	config.Wrap(e.Requests.Over)
	return config
}

// makeRoles makes the ClusterRoles of a file, and gives the manager all but the one on Secrets.
func (e *Env) makeRoles(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	for docs := utilyaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		role := &rbacv1.ClusterRole{}
		err := docs.Decode(role)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && role.Kind == "ClusterRole" {
			err = e.makeRole(role)
		}
		if err != nil {
			return err
		}
	}
}

func (e *Env) makeRole(role *rbacv1.ClusterRole) error {
	if err := e.ensure(role); err != nil || role.Name == secretsRole {
		return err
	}
	return e.ensure(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: roleRef(role.Name), Subjects: subjects(),
	})
}

// ensure makes an object, unless another process of the suite has made it.
func (e *Env) ensure(obj client.Object) error {
	return client.IgnoreAlreadyExists(e.Client.Create(context.Background(), obj))
}

// GrantSecrets gives the manager its rights on the Secrets of a namespace.
func (e *Env) GrantSecrets(ctx context.Context, namespace string) error {
	return e.Client.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secretsRole}, RoleRef: roleRef(secretsRole), Subjects: subjects(),
	})
}

func roleRef(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
}

func subjects() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: managerAccount}}
}
