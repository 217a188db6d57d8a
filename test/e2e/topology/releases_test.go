package topology

import (
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/edpm-operators/edpm-operators/apis/common"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/tier"
	"github.com/edpm-operators/edpm-operators/test/standalone"
)

// earlierLabels is a release that selects pods by all their labels, of which one
// has another value.
var earlierLabels = []standalone.Edit{
	{File: "controllers/glance/glanceapi/service.go", Old: `"glanceAPI": api.ShortName()`, New: `"glanceAPI": api.Name`},
	{File: "internal/podified/statefulset.go", Old: `MatchLabels: p.identity(p.owner)`, New: `MatchLabels: p.Labels`},
	{File: "internal/podified/write.go", Old: `p.identity(p.owner)`, New: `p.Labels`},
}

// earlierLibraries is a release with libraries that write fields into JSON that
// no one sets, and with a hash of that JSON.
var earlierLibraries = []standalone.Edit{
	{File: "internal/apply/apply.go", Old: "want := &unstructured.Unstructured{Object: content}", New: "asEarlier(content)\n\twant := &unstructured.Unstructured{Object: content}"},
	{File: "internal/apply/apply.go", Old: "digest(meaning(desired, want))", New: "digest(want.Object)"},
	{File: "internal/apply/apply.go", Old: "func digest(", New: `func asEarlier(tree any) {
	switch t := tree.(type) {
	case map[string]any:
		if meta, ok := t["metadata"].(map[string]any); ok {
			meta["creationTimestamp"] = nil
		}
		if spec, ok := t["spec"].(map[string]any); ok && spec["accessModes"] != nil {
			t["status"] = map[string]any{}
		}
		for _, value := range t {
			asEarlier(value)
		}
	case []any:
		for _, value := range t {
			asEarlier(value)
		}
	}
}

func digest(`},
}

// release builds another release.
func release(ctx context.Context, edits []standalone.Edit) *standalone.Cluster {
	GinkgoHelper()
	programs, err := os.MkdirTemp(dir, "release-")
	Expect(err).NotTo(HaveOccurred())
	Expect(standalone.BuildOther(ctx, programs, edits...)).To(Succeed())
	return cluster.With(programs)
}

// replaceManager stops the manager and starts that of another release.
func replaceManager(ctx context.Context, other *standalone.Cluster) {
	GinkgoHelper()
	manager.Stop()
	log, err := os.CreateTemp(dir, "manager-*.log")
	Expect(err).NotTo(HaveOccurred())
	Expect(log.Close()).To(Succeed())
	startManager(ctx, other, filepath.Base(log.Name()))
}

// settled waits until the manager writes nothing any more.
func settled(ctx context.Context) {
	GinkgoHelper()
	_, _, err := manager.Quiet(ctx)
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("Another release", tier.Long, func() {
	const single, replicas = "glance-api-single", 3

	// deployed runs three pods with volumes, deployed by the other release.
	deployed := func(ctx SpecContext, edits []standalone.Edit) (*standalone.Cluster, *probe) {
		GinkgoHelper()
		other := release(ctx, edits)
		boot(ctx, sevenNodes())
		enter(ctx)
		replaceManager(ctx, other)
		DeferCleanup(replaceManager, cluster, NodeTimeout(3*time.Minute))
		mustCreate(ctx, "001-control-plane.yaml")
		edit(ctx, `glanceAPIs: {default: null, api: {type: single, replicas: 3}}`)
		Eventually(current(ctx, controlPlane())).WithTimeout(6 * time.Minute).Should(expect.Ready())
		services := []string{single, "glance-api-public", "glance-api-internal"}
		for _, service := range services {
			Eventually(readyEndpoints).WithContext(ctx).WithArguments(service).Should(Equal(replicas))
		}
		settled(ctx)
		return other, watchServices(ctx, services...)
	}

	It("replaces pods one at a time when labels differ, and every Service has the others all the while", func(ctx SpecContext) {
		_, p := deployed(ctx, earlierLabels)
		before, claims := mustIdentify(ctx, single), claimNames(ctx)
		Expect(pod(ctx, single+"-0").Labels).To(HaveKeyWithValue("glanceAPI", single))
		replaceManager(ctx, cluster)
		for name := range before {
			Eventually(getPod).WithContext(ctx).WithTimeout(6 * time.Minute).WithArguments(name).Should(HaveField("Labels", HaveKeyWithValue("glanceAPI", "api")))
		}
		Eventually(current(ctx, controlPlane())).Should(expect.Ready())
		settled(ctx)
		p.expectService(replicas - 1)
		Expect(claimNames(ctx)).To(Equal(claims))
		Expect(statefulSet(ctx, single).Spec.Selector.MatchLabels).To(Equal(map[string]string{"service": "glance", "owner": single}))
	}, SpecTimeout(36*time.Minute))

	It("replaces no pod when only libraries differ, neither as an upgrade nor as a downgrade", func(ctx SpecContext) {
		other, p := deployed(ctx, earlierLibraries)
		before, set := mustIdentify(ctx, single), statefulSet(ctx, single)
		hash := func() string { return statefulSet(ctx, single).Annotations["edpm.openstack.org/applied-hash"] }
		for _, next := range []*standalone.Cluster{cluster, other} {
			last := hash()
			replaceManager(ctx, next)
			Eventually(hash).ShouldNot(Equal(last), "the release writes the StatefulSet")
			settled(ctx)
			Expect(mustIdentify(ctx, single)).To(Equal(before))
			now := statefulSet(ctx, single)
			Expect(now.UID).To(Equal(set.UID))
			Expect(now.Generation).To(Equal(set.Generation))
			Expect(now.Status.UpdateRevision).To(Equal(set.Status.UpdateRevision))
		}
		p.expectService(replicas)
	}, SpecTimeout(36*time.Minute))
})

// What glance-operator made for the GlanceAPI of a person.
var _ = Describe("The pods of another operator", tier.Long, func() {
	const name, replicas = "glance-api-single", 3
	services := []string{name, "glance-api-public", "glance-api-internal"}
	theirs := []client.Object{
		&corev1.Secret{ObjectMeta: named(name + "-config-data"), StringData: map[string]string{"00-config.conf": "[DEFAULT]"}},
		theirSet(name, replicas), theirService(name, name), theirService(services[1], name), theirService(services[2], name),
	}

	It("stay as they are until a user hands everything over, and then change one at a time", func(ctx SpecContext) {
		boot(ctx, sevenNodes())
		enter(ctx)
		for _, obj := range theirs {
			Expect(k8s.Create(ctx, obj)).To(Succeed())
		}
		for _, service := range services {
			Eventually(readyEndpoints).WithContext(ctx).WithArguments(service).Should(Equal(replicas))
		}
		p := watchServices(ctx, services...)
		before := mustIdentify(ctx, name)

		By("refusing what no one owns")
		person := &glancev1.GlanceAPI{ObjectMeta: named(name), Spec: glancev1.GlanceAPISpec{APIName: "api", APIType: glancev1.APISingle}}
		person.Spec.Replicas, person.Spec.Storage.External = ptr.To[int32](replicas), ptr.To(true)
		Expect(k8s.Create(ctx, person)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(k8s.Delete(ctx, person)).To(Succeed()) })
		word := "GlanceAPI.glance.openstack.org/" + name
		refused := func(why string) {
			GinkgoHelper()
			Eventually(current(ctx, api(name))).Should(expect.Problem(condition.DeploymentReadyCondition, common.ConflictReason,
				`Secret "glance-api-single-config-data" `+why, "edpm.openstack.org/owner="+word,
				`Service "glance-api-single"`, `Service "glance-api-public"`, `Service "glance-api-internal"`, `StatefulSet "glance-api-single"`))
			for _, obj := range theirs {
				Expect(k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
				Expect(obj.GetAnnotations()).To(BeEmpty(), "%T %s", obj, obj.GetName())
			}
			Consistently(identities(name)).WithContext(ctx).Should(Equal(before))
		}
		refused("exists already and was not created for GlanceAPI/" + name)

		By("refusing what the GlanceAPI owns")
		for _, obj := range theirs {
			change(ctx, obj, func(obj client.Object) {
				Expect(controllerutil.SetControllerReference(person, obj, k8s.Scheme())).To(Succeed())
			})
		}
		refused("belongs to GlanceAPI/" + name + ", but was created by another operator")

		By("refusing a part")
		handOver := func(obj client.Object) {
			change(ctx, obj, func(obj client.Object) { obj.SetAnnotations(map[string]string{common.OwnerAnnotation: word}) })
		}
		handOver(theirs[0])
		Eventually(current(ctx, api(name))).Should(expect.Problem(condition.DeploymentReadyCondition, common.ConflictReason, `Service "glance-api-single" belongs to`))
		Consistently(identities(name)).WithContext(ctx).Should(Equal(before))
		secret := theirs[0].(*corev1.Secret)
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
		Expect(secret.Data).To(HaveKey("00-config.conf"))

		By("taking everything over on a person's word")
		for _, obj := range theirs[1:] {
			handOver(obj)
		}
		for name := range before {
			Eventually(getPod).WithContext(ctx).WithTimeout(6 * time.Minute).WithArguments(name).Should(HaveField("Labels", HaveKeyWithValue("glanceAPI", "api")))
		}
		Eventually(current(ctx, api(name))).Should(expect.Ready())
		settled(ctx)
		p.expectService(replicas - 1)
		Expect(pod(ctx, name+"-0").Spec.Containers).To(HaveLen(1), "no container of the other operator stays")
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
		Expect(secret.Data).NotTo(HaveKey("00-config.conf"), "nor its configuration")
	}, SpecTimeout(18*time.Minute))
})

// theirLabels are those by which glance-operator knows the pods of a GlanceAPI.
func theirLabels(name string) map[string]string {
	return map[string]string{"service": "glance", "component": "glance-api", "glanceAPI": name, "owner": name}
}

func theirSet(name string, replicas int32) *appsv1.StatefulSet {
	config := corev1.SecretVolumeSource{SecretName: name + "-config-data"}
	return &appsv1.StatefulSet{ObjectMeta: named(name), Spec: appsv1.StatefulSetSpec{
		Replicas: ptr.To(replicas), ServiceName: name, Selector: &metav1.LabelSelector{MatchLabels: theirLabels(name)},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: theirLabels(name)},
			Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "glance-log", Image: "theirs"}, {Name: "glance-api", Image: "theirs"}},
				Volumes:    []corev1.Volume{{Name: "config-data", VolumeSource: corev1.VolumeSource{Secret: &config}}},
			},
		},
	}}
}

func theirService(name, of string) *corev1.Service {
	return &corev1.Service{ObjectMeta: named(name), Spec: corev1.ServiceSpec{
		Selector: theirLabels(of), ClusterIP: clusterIP(name == of), Ports: []corev1.ServicePort{{Name: "glance", Port: 9292, TargetPort: intstr.FromInt32(9292)}},
	}}
}

// clusterIP of a Service that is headless, or else that Kubernetes chooses.
func clusterIP(headless bool) string {
	if headless {
		return corev1.ClusterIPNone
	}
	return ""
}
