package openstack

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/tier"
)

const (
	firstImage = "localhost/edpm-nova:latest"
	nextImage  = "localhost/edpm-nova-newest:latest"
)

// updateStories take nova and its computes, two of one cell and one of another, to the next release
// while guests run. There is no way back: what comes after them runs with that release.
func updateStories(other, ofOtherCell func() lab.Host) {
	computes := func() []lab.Host { return []lab.Host{compute, other(), ofOtherCell()} }

	It("run in two cells", tier.Long, func(ctx SpecContext) {
		Expect(bringUp(ctx, computes()...)).To(Succeed())
		node := nodeOf(ofOtherCell())
		node.Annotations = map[string]string{novav1.CellAnnotation: "nova-cell2"}
		Expect(k8s.Create(ctx, node)).To(Succeed())
		becomesReady(ctx, node.Name)
		Expect(novaManage(ctx, "cell_v2", "list_hosts")).To(MatchRegexp(`(?m)^\| +cell2 +\| \S+ +\| +` + node.Name + ` +\|$`))
	}, SpecTimeout(15*time.Minute))

	It("are offered the next release by other defaults of the manager, which move nothing", tier.Long, func(ctx SpecContext) {
		archive, err := cluster.Run(ctx, "test/lab/images/build.sh", "nova-newest")
		Expect(err).NotTo(HaveOccurred())
		Expect(cluster.Load(ctx, archive[strings.LastIndex(archive, "\n")+1:])).To(Succeed())
		for _, host := range computes() {
			Expect(host.LoadImage(ctx, "nova-newest")).To(Succeed())
		}
		before := imagesOfPods(ctx)
		offer(ctx, nextImage)
		Eventually(updateOffered).WithArguments(ctx).WithTimeout(3 * time.Minute).Should(ContainSubstring(nextImage))
		Consistently(imagesOfPods).WithArguments(ctx).WithTimeout(30 * time.Second).WithPolling(3 * time.Second).Should(Equal(before))
		Expect(expect.Read(ctx, k8s, nova())()).To(expect.Ready())
	}, SpecTimeout(30*time.Minute))

	It("are not updated while one does not report to nova, or nova has one that no longer exists", tier.Long, func(ctx SpecContext) {
		_, err := cluster.Run(ctx, "make", "--silent", "plugin")
		Expect(err).NotTo(HaveOccurred())
		before := imagesOfPods(ctx)
		Expect(other().SSH(ctx, "systemctl stop edpm_nova_compute")).Error().NotTo(HaveOccurred())
		Eventually(hostsOfServices).WithArguments(ctx, "nova-compute").WithTimeout(3 * time.Minute).Should(HaveKeyWithValue(other().Name, "down"))
		Expect(update(ctx)).To(MatchError(And(ContainSubstring("is refused (ComputesDown)"), ContainSubstring(other().Name))))
		takeUpdateBack(ctx)
		Expect(other().SSH(ctx, "systemctl start edpm_nova_compute")).Error().NotTo(HaveOccurred())
		becomesReady(ctx, other().Name)

		query := func(sql string) {
			GinkgoHelper()
			Expect(controller.Console(ctx, "mariadb nova_cell1 --execute \""+sql+"\"")).Error().NotTo(HaveOccurred())
		}
		query("create temporary table lost as select * from services where host = '" + compute.Name + "' and topic = 'compute' and deleted = 0;" +
			" update lost set id = 9999, host = 'lost-host', uuid = uuid(), updated_at = '2020-01-01', last_seen_up = '2020-01-01'; insert into services select * from lost")
		Expect(update(ctx)).To(MatchError(And(ContainSubstring("is refused (ComputeServicesLeft)"), ContainSubstring("lost-host"))))
		takeUpdateBack(ctx)
		query("delete from services where id = 9999")
		Eventually(expect.Read(ctx, k8s, nova())).WithTimeout(3 * time.Minute).Should(expect.Ready())
		Expect(imagesOfPods(ctx)).To(Equal(before))
	}, SpecTimeout(15*time.Minute))

	It("are updated by one command while guests run, are created and deleted", tier.Long, func(ctx SpecContext) {
		before, failures, silent := look(ctx), keepCreating(ctx), watchAPI(ctx)
		Expect(update(ctx)).To(Succeed())
		Eventually(expect.Read(ctx, k8s, nova())).WithTimeout(15 * time.Minute).Should(expect.Ready())
		for _, host := range computes() {
			Eventually(func() (map[string]string, error) {
				obj := &novav1.NovaExternalCompute{ObjectMeta: named(host.Name)}
				return obj.Status.Images, k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj)
			}).WithTimeout(15*time.Minute).Should(HaveKeyWithValue(novav1.ComputeComponent, nextImage), host.Name)
			becomesReady(ctx, host.Name)
			Expect(host.SSH(ctx, "podman container inspect --format {{.ImageName}} edpm_nova_compute")).To(Equal(nextImage))
		}
		Expect(silent()).To(BeEmpty(), "requests to two replicas of the API")
		Expect(failures()).To(BeEmpty(), "guests that were created and deleted meanwhile")
		before.lives(ctx)
		Expect(imagesOfPods(ctx)).To(HaveEach(nextImage))
	}, SpecTimeout(50*time.Minute))

	It("move a guest of the former release to one another", tier.Long, func(ctx SpecContext) {
		before, err := boot(ctx)
		Expect(err).NotTo(HaveOccurred())
		for _, to := range []lab.Host{other(), compute} {
			move(ctx, to)
			Eventually(boot).WithArguments(ctx).WithTimeout(time.Minute).Should(Equal(before))
		}
	}, SpecTimeout(25*time.Minute))

	It("are not taken back to the former release", tier.Long, func(ctx SpecContext) {
		before := imagesOfPods(ctx)
		offer(ctx, firstImage)
		Eventually(updateOffered).WithArguments(ctx).WithTimeout(3 * time.Minute).Should(ContainSubstring(firstImage))
		Expect(update(ctx)).To(MatchError(And(ContainSubstring("is refused (ImageTooOld)"), ContainSubstring(firstImage))))
		takeUpdateBack(ctx)
		offer(ctx, nextImage)
		Eventually(expect.Read(ctx, k8s, nova())).WithTimeout(3 * time.Minute).Should(expect.Ready())
		Expect(imagesOfPods(ctx)).To(Equal(before))
	}, SpecTimeout(15*time.Minute))

	It("leave with the next release", tier.Long, func(ctx SpecContext) {
		before, node := look(ctx), nodeOf(ofOtherCell())
		Expect(k8s.Delete(ctx, node)).To(Succeed())
		Eventually(missing).WithArguments(ctx, node).WithTimeout(8 * time.Minute).Should(BeTrue())
		Expect(hostsOfServices(ctx, "nova-compute")).To(Equal(map[string]string{compute.Name: "up", other().Name: "up"}))
		before.lives(ctx)
		remove(ctx, ofOtherCell())
	}, SpecTimeout(12*time.Minute))
}

// offer has the manager bring this image for everything of nova.
func offer(ctx context.Context, image string) {
	GinkgoHelper()
	args := []string{"-n", lab.ManagerNamespace, "set", "env", "deployment/edpm-operators-manager"}
	for _, component := range []string{"COMPUTE", "LIBVIRT", "CONDUCTOR", "API", "SCHEDULER", "NOVNC"} {
		args = append(args, "RELATED_IMAGE_NOVA_"+component+"_IMAGE_URL_DEFAULT="+image)
	}
	Expect(cluster.Kubectl(ctx, args...)).Error().NotTo(HaveOccurred())
	Expect(cluster.Kubectl(ctx, "-n", lab.ManagerNamespace, "rollout", "status", "deployment/edpm-operators-manager", "--timeout", "2m")).Error().NotTo(HaveOccurred())
}

// update accepts what is offered to the Nova, and follows the update to its end.
func update(ctx context.Context) error {
	_, err := cluster.Run(ctx, filepath.Join("bin", "kubectl-edpm"), "--kubeconfig", cluster.Kubeconfig, "-n", namespace, "update", "nova/nova", "--yes")
	return err
}

// takeUpdateBack does what the message of a refused update says.
func takeUpdateBack(ctx context.Context) {
	GinkgoHelper()
	Expect(change(ctx, nova(), func(obj *novav1.Nova) { delete(obj.Annotations, common.UpdateAnnotation) })).To(Succeed())
}

// updateOffered is the message of the condition UpdateAvailable of the Nova, if it has it.
func updateOffered(ctx context.Context) (string, error) {
	obj := nova()
	err := k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	if c := obj.Status.Conditions.Get(common.UpdateAvailableCondition); c != nil {
		return c.Message, err
	}
	return "", err
}

// imagesOfPods are those of the services of the Nova, by pod.
func imagesOfPods(ctx context.Context) map[string]string {
	GinkgoHelper()
	out, err := cluster.Kubectl(ctx, "-n", namespace, "get", "pods", "--selector", "owner", "-o",
		`jsonpath={range .items[?(@.status.phase=="Running")]}{.metadata.name}{" "}{.spec.containers[0].image}{"\n"}{end}`)
	Expect(err).NotTo(HaveOccurred())
	images := map[string]string{}
	for line := range strings.Lines(out) {
		name, image, _ := strings.Cut(strings.TrimSpace(line), " ")
		images[name] = image
	}
	return images
}
