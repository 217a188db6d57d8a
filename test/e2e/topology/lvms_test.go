package topology

import (
	"context"
	"errors"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	storageClass = "lvms-local-storage"
	// selectedNode is where the scheduler writes which node a claim that waits
	// for its first consumer is to be provided on.
	selectedNode = "volume.kubernetes.io/selected-node"
)

// runLVMS makes the storage class of the seeds and plays its provisioner until
// the suite ends: a volume is made on the node that the scheduler selects for
// the pod, can be reached from there only, and goes with its claim.
func runLVMS() {
	GinkgoHelper()
	ctx, stop := context.WithCancel(context.Background())
	Expect(k8s.Create(ctx, &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: storageClass},
		Provisioner: "topolvm.io", VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer), AllowVolumeExpansion: ptr.To(true),
	})).To(Succeed())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if err := provide(ctx); err != nil && ctx.Err() == nil {
				GinkgoWriter.Println("LVMS:", err)
			}
			time.Sleep(200 * time.Millisecond)
		}
	}()
	DeferCleanup(func() {
		stop()
		<-done
	})
}

// provide makes the volumes that are missing and removes those that are left over.
func provide(ctx context.Context) error {
	claims, volumes := &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}
	if err := errors.Join(k8s.List(ctx, claims), k8s.List(ctx, volumes)); err != nil {
		return err
	}
	claimed, have := map[string]bool{}, map[string]bool{}
	for i := range claims.Items {
		claimed[volumeName(claims.Items[i].UID)] = true
	}
	var errs []error
	for i := range volumes.Items {
		if have[volumes.Items[i].Name] = true; !claimed[volumes.Items[i].Name] {
			errs = append(errs, client.IgnoreNotFound(k8s.Delete(ctx, &volumes.Items[i])))
		}
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.Annotations[selectedNode] != "" && !have[volumeName(claim.UID)] {
			errs = append(errs, k8s.Create(ctx, volumeFor(claim)))
		}
	}
	return errors.Join(errs...)
}

func volumeName(claim types.UID) string { return "pvc-" + string(claim) }

// volumeFor is a volume on the node that was selected for the claim.
func volumeFor(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	onNode := corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{claim.Annotations[selectedNode]}}
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volumeName(claim.UID)}, Spec: corev1.PersistentVolumeSpec{
		StorageClassName: storageClass, Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes,
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		ClaimRef:                      &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
		PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/dev/vg1/" + claim.Name}},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{onNode},
		}}}},
	}}
}

// claimOn makes the claim of a pod beforehand, with its volume on a node: as if
// the scheduler had selected that node when the pod was made for the first time.
func claimOn(ctx context.Context, pod, node string) {
	GinkgoHelper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: named("glance-" + pod)}
	claim.Annotations = map[string]string{selectedNode: node}
	claim.Spec = corev1.PersistentVolumeClaimSpec{
		StorageClassName: ptr.To(storageClass), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: quantity("10G")}},
	}
	Expect(k8s.Create(ctx, claim)).To(Succeed())
}

// volumeOf returns the name of the volume of a pod.
func volumeOf(ctx context.Context, pod string) string {
	GinkgoHelper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: named("glance-" + pod)}
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
	Expect(claim.Spec.VolumeName).NotTo(BeEmpty(), fmt.Sprintf("claim %s has no volume", claim.Name))
	return claim.Spec.VolumeName
}
