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
	storageClass   = "lvms-local-storage"
	cloudDisks     = "gp3-csi"
	storageNetwork = "thin-csi"
	// selectedNode is where the scheduler writes which node a claim that waits
	// for its first consumer is to be provided on.
	selectedNode = "volume.kubernetes.io/selected-node"
)

// reach is the label of the nodes that can use a volume, by storage class: LVMS of
// the first seeds, where it is the node itself, disks of a cloud, which never leave
// their zone, and a storage network, where it is all of them.
var reach = map[string]string{storageClass: corev1.LabelHostname, cloudDisks: corev1.LabelTopologyZone, storageNetwork: ""}

// runProvisioner makes the storage classes and plays their provisioner until the
// suite ends: a volume is made for the node that the scheduler selects for the pod,
// can be used within the reach of its class, and goes with its claim.
func runProvisioner() {
	GinkgoHelper()
	ctx, stop := context.WithCancel(context.Background())
	for class := range reach {
		Expect(k8s.Create(ctx, &storagev1.StorageClass{
			ObjectMeta:  metav1.ObjectMeta{Name: class},
			Provisioner: "example.com/" + class, VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer), AllowVolumeExpansion: ptr.To(true),
		})).To(Succeed())
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if err := provide(ctx); err != nil && ctx.Err() == nil {
				GinkgoWriter.Println("provisioner:", err)
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
			errs = append(errs, makeVolume(ctx, claim))
		}
	}
	return errors.Join(errs...)
}

func volumeName(claim types.UID) string { return "pvc-" + string(claim) }

// makeVolume makes a volume that the node which was selected for the claim reaches.
func makeVolume(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	class := ptr.Deref(claim.Spec.StorageClassName, "")
	key, ours := reach[class]
	if !ours {
		return nil
	}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volumeName(claim.UID)}, Spec: corev1.PersistentVolumeSpec{
		StorageClassName: class, Capacity: claim.Spec.Resources.Requests,
		AccessModes: claim.Spec.AccessModes, VolumeMode: claim.Spec.VolumeMode, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		ClaimRef:               &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
		PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "storage.example.com", Path: "/" + claim.Name}},
	}}
	if key == "" {
		return k8s.Create(ctx, volume)
	}
	selected := node(claim.Annotations[selectedNode])
	if err := k8s.Get(ctx, client.ObjectKeyFromObject(selected), selected); err != nil {
		return err
	}
	within := corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{selected.Labels[key]}}
	volume.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/dev/vg1/" + claim.Name}}
	volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{within},
	}}}}
	return k8s.Create(ctx, volume)
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
