package storagecluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/names"
	"github.com/edpm-operators/edpm-operators/internal/osd"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// served is how long the API server is given to serve a kind that was just defined.
const served = time.Second

// newCephCluster returns the CephCluster, empty. It is kept in the form of JSON: the
// list of device sets is one value, and has fields that no type here knows. It is also
// read past the cache, so that nothing that a user just wrote there is undone.
func (s *scope) newCephCluster() *unstructured.Unstructured {
	ceph := &unstructured.Unstructured{}
	ceph.SetGroupVersionKind(cephv1.GroupVersion.WithKind("CephCluster"))
	ceph.SetNamespace(s.cluster.Namespace)
	ceph.SetName(osd.CephClusterName(s.cluster.Name))
	return ceph
}

// look is the phase that reads the CephCluster, and the pods and claims of OSDs.
func (s *scope) look(ctx context.Context) error {
	kind := cephv1.GroupVersion.WithKind("CephCluster")
	_, err := s.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	switch {
	case meta.IsNoMatchError(err):
		return s.readOSDs(ctx)
	case err != nil:
		return fmt.Errorf("looking for the kind CephCluster: %w", err)
	}
	// The API server lists a kind for a moment after it is removed.
	if s.rook, err = watch.IsDefined(ctx, s, cephv1.CephClusterCRD); err != nil {
		return err
	}
	if !s.rook {
		return s.readOSDs(ctx)
	}
	if err := s.watchCephClusters(ctx); err != nil {
		return err
	}
	ceph := s.newCephCluster()
	if err := s.Get(ctx, client.ObjectKeyFromObject(ceph), ceph); err == nil {
		s.ceph = ceph
	} else if !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading CephCluster %s: %w", ceph.GetName(), err)
	}
	return s.readOSDs(ctx)
}

// decide is the phase that decides what becomes of the CephCluster.
func (s *scope) decide(context.Context) error {
	spec, status := &s.cluster.Spec, &s.cluster.Status
	var ceph osd.Ceph
	if s.ceph != nil {
		ceph = osd.NewCeph(s.ceph.Object)
	}
	claims := s.claims
	var err error
	if s.decision, err = osd.Decide(spec, status.FailureDomainKey, ceph, s.record(), claims); err != nil {
		return phase.Stalled(ocsv1.CephClusterReadyCondition, ocsv1.RefusedReason, "CephCluster %s cannot be read: %v", osd.CephClusterName(s.cluster.Name), err)
	}
	status.LayoutSwitch = osd.DryRun(spec, claims, s.pods)
	if orphans := osd.OrphansOfLayout(spec, claims); len(orphans) > 0 {
		return phase.Stalled(ocsv1.CephClusterReadyCondition, ocsv1.LayoutOrphansReason,
			"spec.deviceSetLayout: %s would orphan %d claims and the OSDs on them (%s): Rook would create new OSDs, and no longer manage these. Set it to %s; the CephCluster is not changed",
			spec.DeviceSetLayout, len(orphans), names.List(orphans, names.Few), osd.OtherLayout(spec.DeviceSetLayout))
	}
	return s.orphans(claims)
}

// orphans stops what would take device sets with OSDs out of the CephCluster, unless
// the annotation names them. Admission refuses it as well, if it is there.
func (s *scope) orphans(claims []*corev1.PersistentVolumeClaim) error {
	dropped := osd.Unnamed(s.cluster, s.decision.Dropped)
	orphans := osd.Orphans(dropped, nil, claims)
	if len(orphans) == 0 {
		return nil
	}
	return phase.Stalled(ocsv1.CephClusterReadyCondition, ocsv1.DeviceSetOrphansReason,
		"spec.storageDeviceSets no longer has the StorageClassDeviceSets of %d claims and the OSDs on them (%s): Rook would no longer manage these. Add the device sets with their count and replica again, or annotate the StorageCluster with %s=%s; the CephCluster is not changed",
		len(orphans), names.List(orphans, names.Few), ocsv1.OrphanAnnotation, strings.Join(dropped, ","))
}

// record returns what the status says of this CephCluster, and what a person allows.
func (s *scope) record() osd.Record {
	record := s.written()
	record.Replaced = osd.Replaced(s.cluster)
	return record
}

// written returns what the status says was written to this CephCluster. One that was
// restored from a backup is another one, of which it says nothing. Earlier versions did
// not note which one it was: there it is the one that they have written to.
func (s *scope) written() osd.Record {
	status := &s.cluster.Status
	switch {
	case s.ceph == nil:
		return osd.Record{}
	case status.CephCluster == nil && s.wroteBefore():
		record := osd.Record{DeviceSets: s.before}
		for daemon := range osd.Placements(&s.cluster.Spec) {
			record.Placements = append(record.Placements, ocsv1.DaemonPlacementStatus{Name: daemon})
		}
		return record
	case status.CephCluster == nil || status.CephCluster.UID != s.ceph.GetUID():
		return osd.Record{}
	}
	return osd.Record{DeviceSets: s.before, Placements: status.CephCluster.Placements}
}

// wroteBefore reports whether fields of the CephCluster are this controller's.
func (s *scope) wroteBefore() bool {
	return slices.ContainsFunc(s.ceph.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool { return m.Manager == fieldManager })
}

// write is the phase that writes the CephCluster, as it was when it was read: Rook and
// people write to it too, and what they write must not be undone.
func (s *scope) write(ctx context.Context) error {
	if !s.rook {
		return s.rookMissing(ctx)
	}
	if err := s.claim(); err != nil {
		return apply.Halt(ocsv1.CephClusterReadyCondition, err)
	}
	if problems := s.decision.Problems; len(problems) > 0 {
		return phase.Stalled(ocsv1.CephClusterReadyCondition, problems[0].Reason, "%s", problems[0].Message)
	}
	desired := s.newCephCluster()
	spec, err := s.decision.Spec()
	if err != nil {
		return err
	}
	desired.Object["spec"] = spec
	written := s.newCephCluster()
	err = apply.Child(ctx, s.Client, fieldManager, s.cluster, desired, written, append(s.ownership(), apply.ComputedFrom(s.present()))...)
	switch {
	case err == nil:
		s.wrote(written)
		return nil
	case apply.IsRefusal(err):
		return refusal(ocsv1.CephClusterReadyCondition, err, "CephCluster %s is refused", written.GetName())
	case apierrors.IsNotFound(err):
		return s.rookMissing(ctx) // the kind was there a moment ago
	}
	return apply.Halt(ocsv1.CephClusterReadyCondition, err)
}

// refusal says that a write was refused, and has it tried again.
func refusal(t condition.Type, err error, format string, args ...any) *phase.Halt {
	halt := phase.Stalled(t, ocsv1.RefusedReason, "%s: %v. Correct what it names, or the webhook or policy that refuses it; it is tried again each minute", fmt.Sprintf(format, args...), err)
	halt.After = apply.RefusedRetry
	return halt
}

// present returns the CephCluster that was read, nil if there was none.
func (s *scope) present() client.Object {
	if s.ceph == nil {
		return nil
	}
	return s.ceph
}

// wrote notes in the status what was written. Nothing is noted before: what was not
// written protects no placement, and gives none away.
func (s *scope) wrote(ceph *unstructured.Unstructured) {
	status := &s.cluster.Status
	for i := range s.decision.DeviceSets {
		set := &s.decision.DeviceSets[i]
		status.DeviceSets[i].Placement, status.DeviceSets[i].Hash, status.DeviceSets[i].StorageClassDeviceSets = set.Placement, set.Hash, set.Names()
	}
	status.CephCluster = &ocsv1.CephClusterStatus{UID: ceph.GetUID()}
	var kept []string
	for _, p := range s.decision.Placements {
		status.CephCluster.Placements = append(status.CephCluster.Placements, ocsv1.DaemonPlacementStatus{Name: p.Name, Kept: p.Kept, Hash: p.Hash})
		if p.Kept {
			kept = append(kept, p.Name)
		}
	}
	message := "CephCluster %s has the device sets"
	if len(kept) > 0 {
		message += "; its own placement of " + strings.Join(kept, ", ") + " stays until spec.placement changes"
	}
	status.Conditions.MarkTrue(ocsv1.CephClusterReadyCondition, message, ceph.GetName())
}

// claim checks that the CephCluster, if there is one, may be written.
func (s *scope) claim() error {
	if s.ceph == nil {
		return nil
	}
	return apply.Check(s.Client, s.cluster, s.ceph, s.ownership()...)
}

// ownership says which CephCluster is ours: one that this controller has written to,
// and one that a person has handed over with the annotation. ocs-operator makes those
// of its StorageClusters with the same owner. One that was there before and that
// nothing controls stays so: deleting a StorageCluster must not delete a CephCluster
// that was not made for it.
func (s *scope) ownership() []apply.Option {
	if s.ceph == nil {
		return nil
	}
	options := []apply.Option{apply.Own}
	if s.wroteBefore() {
		options = []apply.Option{apply.Adopt}
	}
	if metav1.GetControllerOf(s.ceph) == nil {
		options = append(options, apply.Orphan)
	}
	return options
}

// rookMissing says that there is no kind CephCluster. Its definition is watched, but
// appears a moment before the kind is served.
func (s *scope) rookMissing(ctx context.Context) error {
	halt := phase.Failing(ocsv1.CephClusterReadyCondition, ocsv1.RookMissingReason,
		"The resource definition of CephCluster (%s) does not exist: install Rook", cephv1.CephClusterCRD)
	isDefined, err := watch.IsDefined(ctx, s, cephv1.CephClusterCRD)
	if err != nil {
		return err
	}
	if isDefined {
		halt.After = served
	}
	return halt
}
