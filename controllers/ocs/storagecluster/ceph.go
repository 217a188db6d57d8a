package storagecluster

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/osd"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/placement"
)

// served is how long the API server is given to serve a kind that was just defined.
const served = time.Second

// newCephCluster returns the CephCluster, empty. It is kept in the form of JSON: the
// list of device sets is one value, and has fields that no type here knows. It is also
// read past the cache, so that nothing that somebody just wrote there is undone.
func (s *scope) newCephCluster() *unstructured.Unstructured {
	ceph := &unstructured.Unstructured{}
	ceph.SetGroupVersionKind(cephv1.GroupVersion.WithKind("CephCluster"))
	ceph.SetNamespace(s.cluster.Namespace)
	ceph.SetName(osd.CephClusterName(s.cluster.Name))
	return ceph
}

// look is the phase that reads the CephCluster, and what the scheduler would look at.
func (s *scope) look(ctx context.Context) error {
	kind := cephv1.GroupVersion.WithKind("CephCluster")
	_, err := s.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	switch {
	case meta.IsNoMatchError(err):
		return s.readWorld(ctx)
	case err != nil:
		return fmt.Errorf("looking for the kind CephCluster: %w", err)
	}
	s.rook = true
	if err := s.watchCephClusters(ctx); err != nil {
		return err
	}
	ceph := s.newCephCluster()
	if err := s.Get(ctx, client.ObjectKeyFromObject(ceph), ceph); err == nil {
		s.ceph = ceph
	} else if !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading CephCluster %s: %w", ceph.GetName(), err)
	}
	return s.readWorld(ctx)
}

// decide is the phase that decides what becomes of each device set.
func (s *scope) decide(context.Context) error {
	spec, status := &s.cluster.Spec, &s.cluster.Status
	existing, err := s.deviceSets()
	if err != nil {
		return err
	}
	if s.plan, err = osd.Plan(spec, status.FailureDomainKey, existing, s.before); err != nil {
		return err
	}
	claims := s.world.PersistentVolumeClaims
	status.LayoutSwitch = osd.DryRun(spec, claims, s.world.Pods)
	if orphans := osd.OrphansOfLayout(spec, claims); len(orphans) > 0 {
		return phase.Stalled(ocsv1.CephClusterReadyCondition, ocsv1.LayoutOrphansReason,
			"spec.deviceSetLayout: %s would orphan %d claims and the OSDs on them (%s): Rook would make new OSDs, and not look after these any more. Write %s; the CephCluster is left as it is",
			spec.DeviceSetLayout, len(orphans), placement.Enumerate(orphans), osd.OtherLayout(spec.DeviceSetLayout))
	}
	return nil
}

// deviceSets returns those of the CephCluster, as far as the types know them.
func (s *scope) deviceSets() ([]cephv1.StorageClassDeviceSet, error) {
	if s.ceph == nil {
		return nil, nil
	}
	typed := &cephv1.CephCluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(s.ceph.Object, typed); err != nil {
		return nil, fmt.Errorf("reading the device sets of CephCluster %s: %w", s.ceph.GetName(), err)
	}
	return typed.Spec.Storage.StorageClassDeviceSets, nil
}

// write is the phase that writes the CephCluster.
func (s *scope) write(ctx context.Context) error {
	if !s.rook {
		return s.rookMissing(ctx)
	}
	desired, err := s.desired()
	if err != nil {
		return err
	}
	err = apply.Child(ctx, s.Client, fieldManager, s.owner(), desired, s.newCephCluster())
	switch {
	case err == nil:
		s.cluster.Status.Conditions.MarkTrue(ocsv1.CephClusterReadyCondition, "CephCluster %s has the device sets", desired.GetName())
		return nil
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
		return phase.Stalled(ocsv1.CephClusterReadyCondition, ocsv1.RefusedReason, "The API server refuses it: %v", err)
	case apierrors.IsNotFound(err):
		return s.rookMissing(ctx) // the kind was there a moment ago
	}
	return apply.Halt(ocsv1.CephClusterReadyCondition, err)
}

// owner returns whose the CephCluster is to be. One that was there before and is
// nobody's stays so: deleting a StorageCluster must not delete a CephCluster that
// was not made for it.
func (s *scope) owner() client.Object {
	if s.ceph != nil && metav1.GetControllerOf(s.ceph) == nil {
		return nil
	}
	return s.cluster
}

// desired returns the fields of the CephCluster that this project writes.
func (s *scope) desired() (*unstructured.Unstructured, error) {
	desired := s.newCephCluster()
	var present []any
	if s.ceph != nil {
		present, _, _ = unstructured.NestedSlice(s.ceph.Object, "spec", "storage", "storageClassDeviceSets")
	}
	sets, err := osd.MergeDeviceSets(present, &s.cluster.Spec, s.plan, s.before)
	if err != nil {
		return nil, err
	}
	content := &cephv1.CephCluster{}
	content.Spec.Placement = osd.Placements(&s.cluster.Spec)
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&content.Spec)
	if err != nil {
		return nil, fmt.Errorf("converting the placement: %w", err)
	}
	desired.Object["spec"] = spec
	if len(sets) == 0 {
		return desired, nil
	}
	return desired, unstructured.SetNestedSlice(desired.Object, sets, "spec", "storage", "storageClassDeviceSets")
}

// rookMissing says that there is no kind CephCluster. Its definition is watched, but
// appears a moment before the kind is served.
func (s *scope) rookMissing(ctx context.Context) error {
	halt := phase.Failing(ocsv1.CephClusterReadyCondition, ocsv1.RookMissingReason,
		"The cluster has no kind CephCluster (%s): install Rook", cephv1.CephClusterCRD)
	err := s.Get(ctx, client.ObjectKey{Name: cephv1.CephClusterCRD}, Definition())
	switch {
	case err == nil:
		halt.After = served
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("reading CustomResourceDefinition %s: %w", cephv1.CephClusterCRD, err)
	}
	return halt
}
