package openstackdataplanerole

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/dataplane"
	"github.com/edpm-operators/edpm-operators/internal/dataplane/inherit"
	"github.com/edpm-operators/edpm-operators/internal/names"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// restPerNode is how long an inventory rests after it was rendered, for each of
// its nodes: that of 5,000 nodes is rendered at most every 25 seconds while they
// are created or changed, and that of ten at once.
const restPerNode = 5 * time.Millisecond

// published is an inventory as it was rendered last.
type published struct {
	// of is a digest of what it was made from.
	of string
	at time.Time
	// versions of the ConfigMaps.
	versions []string
	// problem is why it is not published, and err why it could not be.
	problem string
	err     error
}

// InventoryName is the name of the ConfigMap with a part of the inventory of a
// role, from 1. No other part of any role can have it: the names of the first parts
// have a hyphen where the others have a number.
func InventoryName(role string, part int) string {
	name := fmt.Sprintf("dataplanerole%d-%s", part, role)
	if part == 1 {
		name = "dataplanerole-" + role
	}
	return names.Fit(name, names.MaxObject)
}

// inventoryPattern matches the names that InventoryName returns.
var inventoryPattern = regexp.MustCompile(`^dataplanerole(?:[1-9][0-9]*)?-(.+)$`)

// roleOfInventory maps a ConfigMap to the role whose inventory has its name,
// whosever it is.
func roleOfInventory(_ context.Context, cm client.Object) []reconcile.Request {
	match := inventoryPattern.FindStringSubmatch(cm.GetName())
	if match == nil {
		return nil
	}
	return watch.NamedOrOwned(cm, match[1], "OpenStackDataPlaneRole")
}

// inventory is the phase that publishes the inventory of all nodes. It serves
// people and their own playbooks; runs do not need it. So one that is too large
// stops nothing, and the condition says so.
func (s *scope) inventory(ctx context.Context) error {
	if _, err := inherit.Vars(s.role.Spec.NodeTemplate.AnsibleVars); err != nil {
		return phase.Stalled(condition.InputReadyCondition, dataplanev1.InvalidVarsReason, "spec.nodeTemplate.ansibleVars: %v", err)
	}
	key, of := client.ObjectKeyFromObject(s.role), s.sources()
	last := s.published[key]
	switch due := time.Until(last.at.Add(time.Duration(len(s.nodes)) * restPerNode)); {
	case last.err == nil && last.of == of && slices.Equal(last.versions, s.versions(ctx, len(last.versions))):
	case due > 0:
		s.again = due
	default:
		last = s.publish(ctx)
		last.of, last.at = of, time.Now()
		s.published[key] = last
	}
	if last.err != nil {
		return last.err
	}
	if last.problem != "" {
		s.role.Status.Conditions.MarkTrue(condition.InputReadyCondition, "Input data complete, but %s, so it is not published; runs do not need it. Shorten ansibleVars of the nodes, or spread the %d nodes over several roles", last.problem, len(s.nodes))
		return nil
	}
	return nil
}

// sources is a digest of the versions of all that the inventory is made from:
// cheaper than the inventory.
func (s *scope) sources() string {
	sum := sha256.New()
	fmt.Fprintln(sum, s.role.UID, s.role.Generation)
	for i := range s.nodes {
		fmt.Fprintln(sum, s.nodes[i].UID, s.nodes[i].Generation)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// versions of the first ConfigMaps as the cache shows them; "" for one that it
// does not show.
func (s *scope) versions(ctx context.Context, parts int) []string {
	var versions []string
	for part := range parts {
		cm := metadata(s.part(part + 1))
		_ = s.Get(ctx, client.ObjectKeyFromObject(cm), cm)
		versions = append(versions, cm.ResourceVersion)
	}
	return versions
}

// publish renders the inventory and brings its ConfigMaps up to date.
func (s *scope) publish(ctx context.Context) published {
	parts, err := dataplane.RoleInventory(s.role, s.nodes)
	if large := (*dataplane.TooLargeError)(nil); errors.As(err, &large) {
		return published{problem: large.Error(), err: s.removeParts(ctx, 0)}
	}
	if err != nil {
		return published{err: err}
	}
	now := published{}
	for i, text := range parts {
		version, err := s.apply(ctx, i+1, text)
		if err != nil {
			return published{err: err}
		}
		now.versions = append(now.versions, version)
	}
	now.err = s.removeParts(ctx, len(parts))
	return now
}

// apply brings the ConfigMap of a part up to date and returns its version.
func (s *scope) apply(ctx context.Context, part int, text string) (string, error) {
	cm, present := s.part(part), &corev1.ConfigMap{}
	cm.Data = map[string]string{dataplane.InventoryKey: text}
	err := apply.Child(ctx, s.Client, fieldManager, s.role, cm, present)
	return present.ResourceVersion, apply.Halt(condition.InputReadyCondition, err)
}

func (s *scope) part(n int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.role.Namespace, Name: InventoryName(s.role.Name, n)}}
}

// removeParts deletes the ConfigMaps that an inventory with so many parts no
// longer needs, as far as the status knows of them, and notes the new number.
func (s *scope) removeParts(ctx context.Context, parts int) error {
	status, known := &s.role.Status, 0
	if status.InventoryConfigMapName != "" {
		known = max(1, int(status.InventoryParts))
	}
	for n := parts + 1; n <= known; n++ {
		if err := s.removePart(ctx, s.part(n)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting part %d of the inventory: %w", n, err)
		}
	}
	status.InventoryConfigMapName, status.InventoryParts = "", 0
	if parts > 0 {
		status.InventoryConfigMapName = InventoryName(s.role.Name, 1)
	}
	if parts > 1 {
		status.InventoryParts = int32(parts)
	}
	return nil
}

// removePart deletes a ConfigMap unless another user has put it there meanwhile.
func (s *scope) removePart(ctx context.Context, part *corev1.ConfigMap) error {
	cm := metadata(part)
	if err := s.Get(ctx, client.ObjectKeyFromObject(cm), cm); err != nil {
		return err
	}
	return apply.Delete(ctx, s.Client, s.role, cm)
}

// metadata is enough to know whose a ConfigMap is, and in which version.
func metadata(cm *corev1.ConfigMap) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: cm.Namespace, Name: cm.Name}}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	return m
}
