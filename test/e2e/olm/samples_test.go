package olm

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	openstackv1 "github.com/edpm-operators/edpm-operators/apis/core/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
)

// control is what the samples leave to a person: secrets, and a Nova that fills
// their NovaCell.
const control = `
apiVersion: v1
kind: Secret
metadata: {name: osp-secret}
stringData: {NovaPassword: nothing-answers}
---
apiVersion: v1
kind: Secret
metadata: {name: rabbitmq-transport-url-nova-cell1-transport}
stringData: {transport_url: "rabbit://nova:nothing-answers@127.0.0.1:5672/"}
---
apiVersion: nova.openstack.org/v1beta1
kind: Nova
metadata: {name: nova}
spec:
  secret: osp-secret
  keystoneAuthURL: http://127.0.0.1:5000
  cellTemplates: {cell1: {hasAPIAccess: true}}
`

// samplesBecomeReady tells what becomes of config/samples. There are no hosts here,
// and so no key for them: test/e2e/walkthrough has the nodes and computes Ready.
func samplesBecomeReady(ctx SpecContext) {
	needPod()
	pretendNodes(ctx, "zoneA", "zoneB", "zoneC")
	DeferCleanup(removePretendNodes)
	Expect(cluster.Apply(ctx, control, "-n", userNS)).To(Succeed())
	_, err := cluster.Kubectl(ctx, "apply", "--validate=strict", "-n", userNS, "-k", "config/samples")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		_, err := cluster.Kubectl(ctx, "delete", "-n", userNS, "-k", "config/samples", "--ignore-not-found", "--timeout=60s")
		Expect(err).NotTo(HaveOccurred())
	})

	for _, list := range []client.ObjectList{
		&topologyv1.TopologyList{}, &openstackv1.OpenStackControlPlaneList{}, &glancev1.GlanceList{}, &glancev1.GlanceAPIList{},
		&novav1.NovaCellList{}, &novav1.NovaComputeList{},
	} {
		Eventually(items).WithArguments(ctx, list).Should(And(Not(BeEmpty()), HaveEach(expect.Ready())), "%T", list)
	}
	Eventually(items).WithArguments(ctx, &dataplanev1.OpenStackDataPlaneNodeList{}).Should(
		HaveEach(expect.False("InputReady", "SecretMissing", "dataplane-ansible-ssh-private-key-secret")))
}

// items lists the objects of a kind.
func items(ctx context.Context, list client.ObjectList) ([]phase.Object, error) {
	if err := k8s.List(ctx, list, client.InNamespace(userNS)); err != nil {
		return nil, err
	}
	found, err := meta.ExtractList(list)
	var objects []phase.Object
	for _, obj := range found {
		objects = append(objects, obj.(phase.Object))
	}
	return objects, err
}

// pretendNodes has KWOK play a node in each zone, on which pods of services run
// without their images, and lets no one else onto the real node.
func pretendNodes(ctx context.Context, zones ...string) {
	GinkgoHelper()
	Expect(cluster.UpWith(ctx, GinkgoWriter, "--olm", "--images", "ansibleee", "--kwok-nodes", fmt.Sprint(len(zones)))).To(Succeed())
	for i, zone := range zones {
		patch := fmt.Sprintf(`{"metadata": {"labels": {"zone": %q}}, "spec": {"taints": null}}`, zone)
		Expect(k8s.Patch(ctx, nodeNamed(fmt.Sprintf("kwok-node-%d", i)), client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
	}
	cordon(ctx, true)
}

// removePretendNodes removes what pretendNodes made once no pod is on them.
func removePretendNodes(ctx SpecContext) {
	Eventually(func() ([]corev1.Pod, error) {
		pods := &corev1.PodList{}
		err := k8s.List(ctx, pods, client.InNamespace(userNS))
		return pods.Items, err
	}).WithTimeout(time.Minute).Should(BeEmpty())
	Expect(k8s.DeleteAllOf(ctx, &corev1.Node{}, client.MatchingLabels{"type": "kwok"})).To(Succeed())
	cordon(ctx, false)
}

// cordon keeps new pods off the real node, or lets them on again.
func cordon(ctx context.Context, closed bool) {
	GinkgoHelper()
	patch := fmt.Sprintf(`{"spec": {"unschedulable": %t}}`, closed)
	Expect(k8s.Patch(ctx, nodeNamed("lab-worker-0"), client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
}

func nodeNamed(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
