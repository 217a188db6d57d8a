package podified_test

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	appsv1 "k8s.io/api/apps/v1"
	k8scorev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

// sets are the images of all StatefulSets, by name.
func (w world) sets(g Gomega) map[string]string {
	list := &appsv1.StatefulSetList{}
	g.Expect(api.List(ctx, list, client.InNamespace(string(w)))).To(Succeed())
	images := map[string]string{}
	for _, set := range list.Items {
		images[set.Name] = set.Spec.Template.Spec.Containers[0].Image
	}
	return images
}

// named fails pods whose name has a part.
func named(part string) func(*k8scorev1.Pod) string {
	return func(pod *k8scorev1.Pod) string {
		if strings.Contains(pod.Name, part) {
			return "DatabaseUnreachable"
		}
		return ""
	}
}

var _ = Describe("An update of a Nova", func() {
	var w world
	nova := func() *novav1.Nova { return &novav1.Nova{ObjectMeta: w.meta("nova")} }
	services := []string{"nova-api", "nova-scheduler", "nova-cell0-conductor", "nova-cell1-conductor", "nova-cell1-metadata"}
	release := func(conductors, scheduler, metadata, api string) map[string]string {
		return map[string]string{
			"nova-cell0-conductor": "conductor:" + conductors, "nova-cell1-conductor": "conductor:" + conductors,
			"nova-scheduler": "scheduler:" + scheduler, "nova-cell1-metadata": "api:" + metadata, "nova-api": "api:" + api,
		}
	}

	BeforeEach(func() {
		w = newWorld()
		w.apply(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "osp-secret"}, "stringData": {"NovaPassword": "p", "NovaCellDatabasePassword": "d", "NovaAPIDatabasePassword": "a", "MetadataSecret": "m"}}`)
		w.apply(w.secret("bus", "transport_url", "rabbit://bus/"))
		w.apply(`apiVersion: nova.openstack.org/v1beta1
kind: Nova
metadata: {name: nova}
spec:
  secret: osp-secret
  keystoneAuthURL: http://keystone.example:5000
  apiServiceTemplate: {replicas: 2}
  cellTemplates:
    cell0: {cellMessageBusSecretName: bus, hasAPIAccess: true, conductorServiceTemplate: {replicas: 2}}
    cell1: {cellMessageBusSecretName: bus, metadataServiceTemplate: {replicas: 1}}`)
		ready(nova())
		Expect(w.sets(Default)).To(Equal(release("1", "1", "1", "1")))
	})

	It("goes step by step in the order of nova, and changes nothing behind a step that fails", func() {
		By("failing the schema of the API database")
		cluster.failJobs(named("api-db-sync"))
		mark := wire.Mark()
		change(nova(), func(n *novav1.Nova) {
			n.Spec.APIServiceTemplate.ContainerImage, n.Spec.SchedulerServiceTemplate.ContainerImage = "api:2", "scheduler:2"
			for name, t := range n.Spec.CellTemplates {
				t.ConductorServiceTemplate.ContainerImage, t.MetadataServiceTemplate.ContainerImage = "conductor:2", "api:2"
				n.Spec.CellTemplates[name] = t
			}
		})
		shows(nova(), condition.DBSyncReadyCondition, "False/DatabaseUnreachable/Warning", "nova-api-db-sync")
		shows(nova(), novav1.UpdateReadyCondition, "False/Updating/Info", "the schema of the API database")
		Consistently(w.sets).Should(Equal(release("1", "1", "1", "1")))

		By("crashing new conductors")
		cluster.crash(func(p *k8scorev1.Pod) string {
			if p.Spec.Containers[0].Image == "conductor:2" {
				return "crashed"
			}
			return ""
		})
		cluster.failJobs(nil)
		Eventually(w.sets).Should(Equal(release("2", "1", "1", "1")))
		shows(nova(), novav1.UpdateReadyCondition, "False/Updating/Info", "StatefulSet nova-cell0-conductor", "conductor:2")
		Consistently(w.sets).Should(Equal(release("2", "1", "1", "1")))
		Expect(w.ran(mark)).To(ConsistOf("nova-api-db-sync", "nova-cell0-db-sync", "nova-cell1-db-sync"), "data is migrated at the end")

		By("repairing them")
		before := wire.Mark()
		cluster.crash(nil)
		Eventually(w.sets).Should(Equal(release("2", "2", "2", "2")))
		Eventually(func() []string { return w.ran(mark) }).Should(ContainElements("nova-cell0-mapping", "nova-cell1-mapping"))
		ready(nova())
		Expect(get(Default, nova()).Status.Conditions.Get(novav1.UpdateReadyCondition)).To(BeNil())
		Expect(get(Default, nova()).Status.Deployed).To(BeNil())
		Expect(order(wire.Since(before, "statefulsets"), services)).To(HaveExactElements("nova-scheduler", "nova-cell1-metadata", "nova-api"))
		quiet()
	})
})

// order are the names in the order in which writes mention them first.
func order(writes, names []string) []string {
	var seen []string
	for _, write := range writes {
		for _, name := range names {
			if strings.HasSuffix(strings.Fields(write)[1], "/"+name) && !slices.Contains(seen, name) {
				seen = append(seen, name)
			}
		}
	}
	return seen
}
