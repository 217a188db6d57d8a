package e2e

import (
	"context"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/test/e2e/internal/audit"
	"github.com/edpm-operators/edpm-operators/test/rights"
)

// unboundNS is a namespace in which the manager has no right on Secrets for a while.
const unboundNS = "e2e-unbound"

// auditStories tell what the manager asked of the API server while all the other
// stories were run.
func auditStories() {
	It("asks for nothing that it may not, for Secrets one by one, and needs what it may", func(ctx SpecContext) {
		needPod()
		findings := audit.Compare(askedBy(managerAccount), grants(ctx), slices.Collect(maps.Keys(rights.Elsewhere)), func(r audit.Request) bool {
			return r.Object.Namespace == unboundNS && r.Object.Resource == "secrets"
		})
		Expect(findings.Refused).To(BeEmpty())
		Expect(findings.Broad).To(BeEmpty())
		AddReportEntry("rights that were not used", findings.Unused)
		if suite, _ := GinkgoConfiguration(); len(suite.FocusStrings)+len(suite.SkipStrings) > 0 {
			Skip("not all stories were run, so not all rights were needed")
		}
		Expect(findings.Unused).To(BeEmpty(), "remove the marker of a right that no one needs, or name in test/rights the suite that needs it")
		Expect(findings.Stale).To(BeEmpty(), "take them out of test/rights")
	}, SpecTimeout(3*time.Minute))
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
