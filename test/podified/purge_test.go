package podified_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gstruct"
	batchv1 "k8s.io/api/batch/v1"
	k8scorev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

// cronJobs are those of the namespace, with schedule and arguments of their script.
func (w world) cronJobs(g Gomega) map[string]string {
	list := &batchv1.CronJobList{}
	g.Expect(api.List(ctx, list, client.InNamespace(string(w)))).To(Succeed())
	out := map[string]string{}
	for _, c := range list.Items {
		script := c.Spec.JobTemplate.Spec.Template.Spec.Containers[0].Command[2]
		_, args, _ := strings.Cut(script, "purge-database.sh ")
		args, _, _ = strings.Cut(args, "\n")
		out[c.Name] = fmt.Sprintf("%s: %s, suspended: %v", c.Spec.Schedule, args, *c.Spec.Suspend)
	}
	return out
}

// runNow has a CronJob run, as kubectl create job --from does.
func (w world) runNow(name, run string) *batchv1.Job {
	GinkgoHelper()
	c := get(Default, &batchv1.CronJob{ObjectMeta: w.meta(name)})
	template := c.Spec.JobTemplate.DeepCopy()
	job := &batchv1.Job{ObjectMeta: w.meta(run), Spec: template.Spec}
	job.Labels, job.Annotations = template.Labels, template.Annotations
	job.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(c, batchv1.SchemeGroupVersion.WithKind("CronJob"))}
	Expect(api.Create(ctx, job)).To(Succeed())
	return job
}

func exists(obj client.Object) bool {
	err := api.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	return !apierrors.IsNotFound(err)
}

var _ = Describe("The databases of a Nova with an API", func() {
	var w world
	nova := func() *novav1.Nova { return &novav1.Nova{ObjectMeta: w.meta("nova")} }
	failing := func(part, reason string) {
		cluster.failJobs(func(pod *k8scorev1.Pod) string {
			if strings.Contains(pod.Name, part) {
				return reason
			}
			return ""
		})
	}
	edit := func(cell string, f func(*novav1.NovaCellTemplate)) {
		GinkgoHelper()
		change(nova(), func(n *novav1.Nova) {
			t := n.Spec.CellTemplates[cell]
			f(&t)
			n.Spec.CellTemplates[cell] = t
		})
	}

	BeforeEach(func() {
		w = newWorld()
		w.apply(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "osp-secret"}, "stringData": {"NovaPassword": "p", "NovaCellDatabasePassword": "d", "NovaAPIDatabasePassword": "a"}}`)
		w.apply(w.secret("bus", "transport_url", "rabbit://bus/"))
		w.apply(`apiVersion: nova.openstack.org/v1beta1
kind: Nova
metadata: {name: nova}
spec:
  secret: osp-secret
  keystoneAuthURL: http://keystone.example:5000
  apiServiceTemplate: {replicas: 1}
  nodeSelector: {zone: zoneA}
  cellTemplates:
    cell0: {cellMessageBusSecretName: bus, hasAPIAccess: true}
    cell1: {cellMessageBusSecretName: bus, dbPurge: {schedule: "30 2 * * 6", archiveAge: 7, purgeAge: 14}}
    cell2: {cellMessageBusSecretName: bus, dbPurge: {suspend: true}}`)
		ready(nova())
	})

	It("lose rows of deleted instances as each cell says", func() {
		const afterMidnight = `^[1-5]?\d 0 \* \* \*: `
		Expect(w.cronJobs(Default)).To(gstruct.MatchAllKeys(gstruct.Keys{
			"nova-cell0-db-purge": MatchRegexp(afterMidnight + "30 90, suspended: false$"),
			"nova-cell1-db-purge": Equal("30 2 * * 6: 7 14, suspended: false"),
			"nova-cell2-db-purge": MatchRegexp(afterMidnight + "30 90, suspended: true$"),
		}))
		shows(nova(), novav1.NovaDBPurgeReadyCondition, "True/Ready/", "as scheduled")
		one := get(Default, &batchv1.CronJob{ObjectMeta: w.meta("nova-cell1-db-purge")})
		Expect(one.Spec.ConcurrencyPolicy).To(Equal(batchv1.ForbidConcurrent))
		Expect(one.Spec.JobTemplate.Spec.Template.Spec.NodeSelector).To(Equal(map[string]string{"zone": "zoneA"}))
		Expect(w.config("nova-cell1-db-purge", "01-nova.conf")).To(And(ContainSubstring(".svc/nova_cell1?charset"), ContainSubstring(".svc/nova_api?charset")))
		quiet()

		By("changing what a cell says")
		edit("cell1", func(t *novav1.NovaCellTemplate) { t.DBPurge.ArchiveAge, t.DBPurge.Schedule = 10, "@daily" })
		Eventually(w.cronJobs).Should(HaveKeyWithValue("nova-cell1-db-purge", "@daily: 10 14, suspended: false"))

		By("having a schedule that no CronJob can have")
		edit("cell1", func(t *novav1.NovaCellTemplate) { t.DBPurge.Schedule = "61 0 * * *" })
		shows(nova(), novav1.NovaDBPurgeReadyCondition, "False/Refused/Error", "rejects CronJob nova-cell1-db-purge", "end of range (61)")
		edit("cell1", func(t *novav1.NovaCellTemplate) { t.DBPurge.Schedule = "1 0 * * *" })
		ready(nova())

		By("running no API")
		change(nova(), func(n *novav1.Nova) { n.Spec.APIServiceTemplate.Replicas = nil })
		Eventually(w.cronJobs).Should(BeEmpty())
	})

	It("leave a CronJob of another owner alone that has the name of one of theirs", func() {
		edit("cell1", func(t *novav1.NovaCellTemplate) { t.DBPurge.Suspend = true })
		theirs := get(Default, &batchv1.CronJob{ObjectMeta: w.meta("nova-cell1-db-purge")})
		change(nova(), func(n *novav1.Nova) { n.Spec.APIServiceTemplate.Replicas = nil })
		Eventually(w.cronJobs).Should(BeEmpty())
		theirs.ObjectMeta = w.meta(theirs.Name)
		theirs.Spec.Schedule = "@yearly"
		Expect(api.Create(ctx, theirs)).To(Succeed())

		change(nova(), func(n *novav1.Nova) { n.Spec.APIServiceTemplate.Replicas = ptr.To[int32](1) })
		shows(nova(), novav1.NovaDBPurgeReadyCondition, "False/Conflict/Error", `CronJob "nova-cell1-db-purge"`, "delete it if nothing needs it, or rename one of the two")
		quiet()
		Expect(w.cronJobs(Default)).To(HaveKeyWithValue("nova-cell1-db-purge", HavePrefix("@yearly: ")))
	})

	It("say why rows are not purged, and that they are again", func() {
		failing("nova-cell1-db-purge-now", "DatabaseUnreachable")
		now := w.runNow("nova-cell1-db-purge", "nova-cell1-db-purge-now")
		shows(nova(), novav1.NovaDBPurgeReadyCondition, "False/DatabaseUnreachable/Warning", "remove rows of deleted instances from the database of cell cell1", "does not answer", "kubectl logs job/nova-cell1-db-purge-now")
		cluster.failJobs(nil)
		shows(nova(), novav1.NovaDBPurgeReadyCondition, "True/Ready/")
		Eventually(func(g Gomega) { g.Expect(get(g, now).Status.Succeeded).To(BeEquivalentTo(1)) }).Should(Succeed())
		ready(nova())
		quiet()

		By("failing with a password that is corrected")
		failing("nova-cell1-db-purge-late", "DatabaseAccessDenied")
		late := w.runNow("nova-cell1-db-purge", "nova-cell1-db-purge-late")
		shows(nova(), novav1.NovaDBPurgeReadyCondition, "False/DatabaseAccessDenied/Warning", "correct the user or its password")
		w.apply(w.secret("osp-secret", "NovaCellDatabasePassword", "d2"))
		Eventually(exists).WithArguments(late).Should(BeFalse())
		ready(nova())
		Expect(w.config("nova-cell1-db-purge", "01-nova.conf")).To(ContainSubstring("nova:d2@"))
	})

	It("forget a removed cell once nova has nothing in it", func() {
		cell := &novav1.NovaCell{ObjectMeta: w.meta("nova-cell2")}
		template := get(Default, nova()).Spec.CellTemplates["cell2"]
		births, mark := w.births(), wire.Mark()
		failing("nova-cell2-mapping", "CellHasHosts")
		change(nova(), func(n *novav1.Nova) { delete(n.Spec.CellTemplates, "cell2") })
		shows(nova(), novav1.NovaCellMappingsReadyCondition, "False/CellHasHosts/Warning", "remove cell cell2 from the API database", "openstack compute service delete")
		failing("nova-cell2-mapping", "CellHasInstances")
		shows(nova(), novav1.NovaCellMappingsReadyCondition, "False/CellHasInstances/Warning", "the cell has instances: delete them")
		quiet()
		Expect(w.births()).To(Equal(births), "the conductor is needed until instances are deleted, and the API knows the cell")
		Expect(w.config("nova-cell2-mapping", "01-nova.conf")).To(ContainSubstring(".svc/nova_cell2?charset"))
		Expect(w.cronJobs(Default)).To(HaveLen(2))

		By("adding it again: it is mapped again")
		cluster.failJobs(nil)
		failing("nova-cell2-mapping", "CellHasInstances")
		change(nova(), func(n *novav1.Nova) { n.Spec.CellTemplates["cell2"] = template })
		shows(nova(), novav1.NovaCellMappingsReadyCondition, "False/JobFailing/Warning", "map cell cell2 in the API database")
		cluster.failJobs(nil)
		ready(nova())
		Eventually(w.births).Should(And(HaveLen(5), HaveKeyWithValue("nova-cell2-conductor-0", births["nova-cell2-conductor-0"]), Not(HaveKeyWithValue("nova-api-0", births["nova-api-0"]))),
			"its mapping may be another one, which the API reads when it starts")
		births = w.births()

		By("removing it while it is empty")
		change(nova(), func(n *novav1.Nova) { delete(n.Spec.CellTemplates, "cell2") })
		Eventually(exists).WithArguments(cell).Should(BeFalse())
		Eventually(w.births).Should(And(HaveLen(4), Not(HaveKeyWithValue("nova-api-0", births["nova-api-0"])), Not(HaveKeyWithValue("nova-scheduler-0", births["nova-scheduler-0"]))),
			"the API knows the cells that are mapped when it starts")
		ready(nova())
		Expect(slices.Sorted(maps.Keys(get(Default, nova()).Status.Jobs))).To(Equal([]string{"nova-api-db-sync", "nova-cell0-mapping", "nova-cell0-online-migrations", "nova-cell1-mapping", "nova-cell1-online-migrations"}))
		Expect(w.ran(mark)).To(Equal([]string{"nova-cell2-mapping", "nova-cell2-mapping", "nova-cell2-online-migrations", "nova-cell2-mapping"}))
		quiet()
	})

	It("keep a cell when the Nova is deleted", func() {
		mark := wire.Mark()
		Expect(api.Delete(ctx, nova())).To(Succeed())
		Eventually(w.births).Should(BeEmpty())
		Expect(w.ran(mark)).To(BeEmpty())
	})
})
