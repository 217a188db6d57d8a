package placement

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
)

// defaultClassAnnotation marks the class of claims that name none.
const defaultClassAnnotation = "storageclass.kubernetes.io/is-default-class"

// noProvisioner is the provisioner of classes whose volumes are made by hand.
const noProvisioner = "kubernetes.io/no-provisioner"

// storage plays what the cluster does with claims before the scheduler sees
// them: the default class at admission, and the binding of claims of classes
// with Immediate binding, which the persistent volume controller does.
type storage struct {
	objects
	policies *policies
}

// provide adds a claim unless it is there. The error is a denial if the API server
// refuses it.
func (s storage) provide(claim *corev1.PersistentVolumeClaim) error {
	if _, err := s.claims().PersistentVolumeClaims(claim.Namespace).Get(claim.Name); !apierrors.IsNotFound(err) {
		return err
	}
	class := s.classOf(claim)
	if err := s.policies.admitClaim(claim); err != nil {
		return err
	}
	if class == nil || ptr.Deref(class.VolumeBindingMode, storagev1.VolumeBindingImmediate) == storagev1.VolumeBindingImmediate {
		pv, err := s.volumeFor(claim, class)
		if err != nil {
			return err
		}
		if pv != nil {
			if err := s.bind(claim, pv); err != nil {
				return err
			}
		}
	}
	return s.add(claim)
}

// classOf returns the class of a claim, nil if it has none or it does not exist,
// and notes the default class in a claim that names none.
func (s storage) classOf(claim *corev1.PersistentVolumeClaim) *storagev1.StorageClass {
	if claim.Spec.StorageClassName == nil {
		class := s.defaultClass()
		if class != nil {
			claim.Spec.StorageClassName = &class.Name
		}
		return class
	}
	class, err := s.classes().Get(*claim.Spec.StorageClassName)
	if err != nil {
		return nil
	}
	return class
}

// defaultClass returns the newest class that is marked as default, the first by
// name of several; as the admission plugin DefaultStorageClass chooses.
func (s storage) defaultClass() *storagev1.StorageClass {
	classes := slices.DeleteFunc(slices.Clone(s.snapshot.StorageClasses), func(c *storagev1.StorageClass) bool {
		return c.Annotations[defaultClassAnnotation] != "true"
	})
	if len(classes) == 0 {
		return nil
	}
	return slices.MinFunc(classes, func(a, b *storagev1.StorageClass) int {
		if newer := b.CreationTimestamp.Compare(a.CreationTimestamp.Time); newer != 0 {
			return newer
		}
		return strings.Compare(a.Name, b.Name)
	})
}

// volumeFor returns the volume that the controller would bind the claim to: one
// that exists, or one that a provisioner will make; nil if there is none.
func (s storage) volumeFor(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) (*corev1.PersistentVolume, error) {
	accessible := slices.DeleteFunc(s.volumes(), func(pv *corev1.PersistentVolume) bool { return !volume.CheckAccessModes(claim, pv) })
	pv, err := volume.FindMatchingVolume(claim, accessible, nil, nil, false, true)
	if pv != nil || err != nil {
		return pv, err
	}
	if class == nil || cmp.Or(class.Provisioner, noProvisioner) == noProvisioner {
		return nil, nil
	}
	name := "next-" + string(claim.UID)
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: class.Name, AccessModes: claim.Spec.AccessModes,
			Capacity: claim.Spec.Resources.Requests, NodeAffinity: allowed(class),
			// The scheduler counts the volumes of a driver by their handles.
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: class.Provisioner, VolumeHandle: name}},
		},
	}, nil
}

// allowed are the nodes that can reach a new volume of the class, if the class
// says so; where a provisioner puts the volume is not known before.
func allowed(class *storagev1.StorageClass) *corev1.VolumeNodeAffinity {
	var terms []corev1.NodeSelectorTerm
	for _, t := range class.AllowedTopologies {
		var term corev1.NodeSelectorTerm
		for _, e := range t.MatchLabelExpressions {
			term.MatchExpressions = append(term.MatchExpressions,
				corev1.NodeSelectorRequirement{Key: e.Key, Operator: corev1.NodeSelectorOpIn, Values: e.Values})
		}
		terms = append(terms, term)
	}
	if terms == nil {
		return nil
	}
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}
}

// bind writes on both what the controller writes.
func (s storage) bind(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) error {
	bound, _, err := volume.GetBindVolumeToClaim(pv, claim)
	if err != nil {
		return err
	}
	bound.Status.Phase = corev1.VolumeBound
	claim.Spec.VolumeName = bound.Name
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volume.AnnBindCompleted, "yes")
	claim.Status.Phase = corev1.ClaimBound
	return s.add(bound)
}
