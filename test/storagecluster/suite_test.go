package storagecluster_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/edpm-operators/edpm-operators/test/envtest"
)

const (
	// soon is for what takes a few reconciliations, on a busy machine.
	soon = 60 * time.Second
	// gather is how long the manager gathers changes.
	gather = 100 * time.Millisecond
	// still is for what must not happen: longer than changes are gathered, on a busy
	// machine.
	still = gather + time.Second
)

var (
	env *envtest.Env
	api client.Client
	ctx = context.Background()
)

func TestStorageCluster(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(soon)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	SetDefaultConsistentlyDuration(still)
	SetDefaultConsistentlyPollingInterval(100 * time.Millisecond)
	RunSpecs(t, "StorageCluster")
}

var _ = BeforeSuite(func() {
	ctrl.SetLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(GinkgoWriter))))
	env = envtest.Start(GinkgoT(), envtest.Options{})
	api = newClient()
	grant(envtest.File("config", "rbac", "role.yaml"), envtest.File("config", "overlays", "ocs", "role.yaml"))
})

// manager is the user as whom managers run: one with the rights that are deployed.
const manager = "manager"

// grant gives the user the ClusterRoles of the files.
func grant(files ...string) {
	GinkgoHelper()
	for _, file := range files {
		text, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		role := &rbacv1.ClusterRole{}
		document, _, _ := strings.Cut(strings.TrimPrefix(string(text), "---\n"), "\n---\n")
		Expect(yaml.UnmarshalStrict([]byte(document), role)).To(Succeed(), file)
		Expect(role.Kind).To(Equal("ClusterRole"), file)
		Expect(api.Create(ctx, role)).To(Succeed())
		Expect(api.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name}, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: manager, APIGroup: rbacv1.GroupName}},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		})).To(Succeed())
	}
}
