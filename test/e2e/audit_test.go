package e2e

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/test/e2e/internal/audit"
)

// notHere are rights that no story of this suite needs, and why they are granted.
var notHere = map[string]string{
	"update */*/finalizers": "asked for by the admission plugin OwnerReferencesPermissionEnforcement, which OpenShift has and the lab has not",
	"update ansibleee.openstack.org/openstackansibleees/targets": "no request is made with it: the webhook of runs asks whether somebody has it",

	"list k8s.cni.cncf.io/*":  noMultus,
	"watch k8s.cni.cncf.io/*": noMultus,

	"create dataplane.openstack.org/openstackdataplaneroles":   ofDataPlane,
	"patch dataplane.openstack.org/openstackdataplaneroles":    ofDataPlane,
	"delete dataplane.openstack.org/openstackdataplaneroles":   ofDataPlane,
	"create dataplane.openstack.org/openstackdataplanenodes":   ofDataPlane,
	"delete dataplane.openstack.org/openstackdataplanenodes":   ofDataPlane,
	"patch dataplane.openstack.org/openstackdataplanes/status": ofDataPlane,

	"create glance.openstack.org/glances":                    ofControlPlane,
	"patch glance.openstack.org/glances":                     ofControlPlane,
	"delete glance.openstack.org/glances":                    ofControlPlane,
	"create nova.openstack.org/nova":                         ofControlPlane,
	"patch nova.openstack.org/nova":                          ofControlPlane,
	"delete nova.openstack.org/nova":                         ofControlPlane,
	"patch core.openstack.org/openstackcontrolplanes/status": ofControlPlane,

	"patch nova.openstack.org/novacells":             inPods,
	"patch nova.openstack.org/novacomputes":          inPods,
	"patch nova.openstack.org/novacomputes/status":   inPods,
	"delete glance.openstack.org/glanceapis":         inPods,
	"patch /pods":                                    inPods,
	"delete /pods":                                   inPods,
	"delete apps/statefulsets":                       inPods,
	"get apps/statefulsets":                          inPods,
	"delete nova.openstack.org/novacells":            "a cell is taken out of a Nova: controllers/nova_test.go",
	"delete nova.openstack.org/novaexternalcomputes": "a compute is in the way of its node: controllers/computes_test.go",

	"delete ansibleee.openstack.org/openstackansibleees": "there are more runs than --run-history: internal/edpm/prune_test.go",
	"get ansibleee.openstack.org/openstackansibleees":    lateCache,
	"get batch/jobs": lateCache,
	"get /secrets":   lateCache,

	"patch /events " + systemNS: "counts an event that is told again: of the lease of the leader there is one of each kind",
}

// Reasons that rights have in common.
const (
	noMultus       = "the lab has no Multus: test/podified, controllers/ansibleee_test.go"
	ofDataPlane    = "an OpenStackDataPlane makes, changes and removes roles and nodes: controllers/dataplane_test.go"
	ofControlPlane = "an OpenStackControlPlane makes, changes and removes services: test/podified"
	inPods         = "services in pods are changed and removed: test/podified"
	lateCache      = "the cache may not show yet what the manager did before it died: internal/edpm, controllers/once_test.go"
)

// unboundNS is a namespace in which the manager has no right on Secrets for a while.
const unboundNS = "e2e-unbound"

// auditStories tell what the manager asked of the API server while all the other
// stories were told.
func auditStories() {
	It("it asked for nothing that it may not, for Secrets one by one, and it needs what it may", func(ctx SpecContext) {
		needPod()
		findings := audit.Compare(askedBy(managerAccount), grants(ctx), notHere, func(r audit.Request) bool {
			return r.Object.Namespace == unboundNS && r.Object.Resource == "secrets"
		})
		Expect(findings.Refused).To(BeEmpty())
		Expect(findings.Broad).To(BeEmpty())
		AddReportEntry("rights that were not used", findings.Unused)
		if suite, _ := GinkgoConfiguration(); len(suite.FocusStrings)+len(suite.SkipStrings) > 0 {
			Skip("not all stories were told, so not all rights were needed")
		}
		Expect(findings.Unused).To(BeEmpty(), "remove the marker of a right that nobody needs, or say in notHere why it is granted")
		Expect(findings.Stale).To(BeEmpty(), "take them out of notHere")
	}, SpecTimeout(time.Minute))
}

// askedBy returns the requests of an account.
func askedBy(account string) []audit.Request {
	GinkgoHelper()
	files, err := cluster.AuditLogs()
	Expect(err).NotTo(HaveOccurred())
	var logs []io.Reader
	for _, name := range files {
		file, err := os.Open(name)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(file.Close)
		logs = append(logs, file)
	}
	requests, err := audit.Read(io.MultiReader(logs...), account)
	Expect(err).NotTo(HaveOccurred())
	Expect(len(requests)).To(BeNumerically(">", 100), "there is hardly anything in %v", files)
	return requests
}

// grants are those of the manager's account.
func grants(ctx context.Context) []audit.Grant {
	GinkgoHelper()
	everywhere, somewhere := &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleBindingList{}
	Expect(k8s.List(ctx, everywhere)).To(Succeed())
	Expect(k8s.List(ctx, somewhere)).To(Succeed())
	for _, b := range everywhere.Items {
		somewhere.Items = append(somewhere.Items, rbacv1.RoleBinding{RoleRef: b.RoleRef, Subjects: b.Subjects})
	}
	var all []audit.Grant
	for _, b := range somewhere.Items {
		if !slices.ContainsFunc(b.Subjects, ofManager) {
			continue
		}
		role, clusterRole := &rbacv1.Role{}, &rbacv1.ClusterRole{}
		if b.RoleRef.Kind == "Role" {
			Expect(k8s.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: b.RoleRef.Name}, role)).To(Succeed())
		} else {
			Expect(k8s.Get(ctx, client.ObjectKey{Name: b.RoleRef.Name}, clusterRole)).To(Succeed())
		}
		all = append(all, audit.Grant{Namespace: b.Namespace, Rules: append(role.Rules, clusterRole.Rules...)})
	}
	Expect(all).NotTo(BeEmpty())
	return all
}

func ofManager(s rbacv1.Subject) bool {
	return s.Kind == rbacv1.ServiceAccountKind && strings.HasSuffix(managerAccount, ":"+s.Namespace+":"+s.Name)
}
