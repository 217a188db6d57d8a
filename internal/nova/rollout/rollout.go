// Package rollout decides how computes follow a change of the image of their cell. Hosts pull it
// while they run, then one gets it first, and the others once nova says that it is up. How
// many of these are interrupted at a time is for the engine to say (maxUnavailable). Computes
// in pods get it one after the other.
package rollout

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeimage"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// mostNames is how many computes are named that do not follow.
const mostNames = 10

// Begin notes that the image of the computes of a cell has changed. One that is recorded for
// the first time is no change: what runs when a cell is created, or was before images were
// recorded, stays.
func Begin(cell *novav1.NovaCell, before string) {
	if image := imageOf(cell); before != "" && image != before {
		cell.Status.ComputeUpdate = &novav1.ComputeUpdate{Image: image}
	}
}

// Of is how computes of a cell follow its image, zero if they do not.
func Of(cell client.Object) novav1.ComputeUpdate {
	return ptr.Deref(cell.(*novav1.NovaCell).Status.ComputeUpdate, novav1.ComputeUpdate{})
}

// OfHosts is what computes on hosts read of that. It changes a few times in an update: all of
// them are looked at when it does.
func OfHosts(cell client.Object) novav1.ComputeUpdate {
	update := Of(cell)
	update.Pods = ""
	return update
}

func imageOf(cell *novav1.NovaCell) string { return cell.Status.Images[novav1.ComputeComponent] }

// isPinned reports whether a compute keeps its image because it was chosen for it.
func isPinned(compute *novav1.NovaExternalCompute, image string) bool {
	own := computeimage.Of(compute)
	return own != "" && own != image && (compute.Status.TemplateImage != "" || computeimage.IsChosen(compute, novav1.ComputeComponent))
}

// isOutdated reports whether computes of a cell are still to get an image. Those that were left
// behind by an update in which computes did not follow are not waited for.
func isOutdated(cell *novav1.NovaCell, image string) bool {
	status := cell.Status
	if status.ObservedGeneration != cell.Generation || imageOf(cell) != image {
		return true
	}
	update := status.ComputeUpdate
	if update == nil || update.Image != image {
		return false
	}
	return update.Pods != "" || status.Computes != nil && status.Computes.Outdated > 0
}

// Changes lets through what a cell counts of its computes.
var Changes = watch.SpecOr(func(obj client.Object) (seen struct{ image, deployed, ready, service, config string }) {
	c := obj.(*novav1.NovaExternalCompute)
	show := func(t condition.Type) string {
		if shown := c.Status.Conditions.Get(t); shown != nil {
			return fmt.Sprint(shown.Status, shown.Reason, shown.Severity)
		}
		return ""
	}
	seen.image = fmt.Sprint(c.Status.Images[novav1.ComputeComponent], c.Status.PulledImage, c.Status.ObservedGeneration, isDeployed(c))
	seen.deployed, seen.ready, seen.service = show(condition.DeploymentReadyCondition), show(condition.ReadyCondition), show(novav1.ComputeServiceReadyCondition)
	seen.config = c.Status.ConfigHash
	return seen
})

// Advance brings the update of the computes of a cell forward. It is for when the conductors of
// the cell have the release of the new image.
func Advance(cell *novav1.NovaCell, computes []novav1.NovaExternalCompute) {
	advance(cell.Status.ComputeUpdate, imageOf(cell), computes)
}

// Sum counts the computes of a cell, and says which of those in pods is next in their update.
func Sum(cell *novav1.NovaCell, computes []novav1.NovaExternalCompute, inPods []novav1.NovaCompute) {
	status, image := &cell.Status, imageOf(cell)
	if status.ComputeUpdate != nil {
		status.ComputeUpdate.Pods = nextPods(image, inPods)
	}
	status.Computes = nil
	if len(computes) > 0 {
		status.Computes = count(image, computes)
	}
	if u := status.ComputeUpdate; u != nil && u.Verified && !isOutdated(cell, u.Image) && !keepsEarlier(u.Image, computes) {
		status.ComputesRelease = u.Image
	}
}

// keepsEarlier reports whether a compute has another image than its cell because it was chosen for
// it. Services that restarted now would ask in vain which release all computes have.
func keepsEarlier(image string, computes []novav1.NovaExternalCompute) bool {
	return slices.ContainsFunc(computes, func(c novav1.NovaExternalCompute) bool {
		return isDeployed(&c) && c.Status.Images[novav1.ComputeComponent] != image
	})
}

// Release identifies the images that the computes of cells have had since all followed the last
// update; empty if they have followed none.
func Release(cells []*novav1.NovaCell) string {
	release := ""
	for _, cell := range cells {
		if image := cell.Status.ComputesRelease; image != "" {
			release += cell.Name + "=" + image + "\n"
		}
	}
	if release == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(release))
	return hex.EncodeToString(sum[:8])
}

// releaseFile tells apart configurations of services that were started before and after all
// computes had a release. No program reads it: with [upgrade_levels] compute = auto they
// ask which releases computes have when they start.
const releaseFile = "computes-release"

// mappingsFile tells apart configurations before and after cells are mapped otherwise: a service
// keeps how it reaches another cell until it ends (nova/context.py, CELL_CACHE).
const mappingsFile = "cell-mappings"

// Files are those that restart the services of a cell in pods once all computes have followed
// an update, those of all cells where a Nova says so, and services that reach other cells once
// these are mapped otherwise.
func Files(cell *novav1.NovaCell) map[string][]byte {
	release, mappings := cell.Status.ComputesRelease, ""
	if metav1.GetControllerOf(cell) != nil {
		release = cell.Annotations[novav1.ComputesReleaseAnnotation]
		if cell.Spec.APIDatabaseHostname != "" {
			mappings = cell.Annotations[novav1.CellMappingsAnnotation]
		}
	}
	files := map[string][]byte{releaseFile: []byte(release), mappingsFile: []byte(mappings)}
	maps.DeleteFunc(files, func(_ string, content []byte) bool { return len(content) == 0 })
	return files
}

func count(image string, computes []novav1.NovaExternalCompute) *novav1.ComputesStatus {
	n := &novav1.ComputesStatus{Total: int32(len(computes))} //nolint:gosec // they fit into memory
	for i := range computes {
		c := &computes[i]
		if c.HasOwnConfig() {
			n.OwnConfig++
		}
		switch {
		case isPinned(c, image):
			n.Pinned++
			n.PinnedNames = append(n.PinnedNames, c.Name)
		case isCurrent(c, image):
			n.Current++
		case isDeployed(c):
			n.Outdated++
		}
		switch deployed := c.Status.Conditions.Get(condition.DeploymentReadyCondition); {
		case deployed == nil:
		case deployed.Reason == condition.Reason(edpm.Running):
			n.Busy++
		case deployed.Severity == condition.SeverityWarning || deployed.Severity == condition.SeverityError:
			n.Failed++
		}
	}
	slices.Sort(n.PinnedNames)
	n.PinnedNames = n.PinnedNames[:min(len(n.PinnedNames), mostNames)]
	return n
}

// isDeployed reports whether a compute has been deployed, and is to stay.
func isDeployed(c *novav1.NovaExternalCompute) bool {
	return c.DeletionTimestamp.IsZero() && c.Status.Hash[novav1.NovaStep] != ""
}

// HasFollowed reports whether a compute that has been deployed has the image of its cell.
func HasFollowed(cell *novav1.NovaCell, c *novav1.NovaExternalCompute) bool {
	return isDeployed(c) && c.Status.Images[novav1.ComputeComponent] == imageOf(cell)
}

// isCurrent reports whether a compute is deployed with an image and its configuration.
func isCurrent(c *novav1.NovaExternalCompute, image string) bool {
	return c.Status.ObservedGeneration == c.Generation && c.Status.Images[novav1.ComputeComponent] == image &&
		c.Status.Conditions.IsTrue(condition.DeploymentReadyCondition)
}

// isUp reports whether nova-compute reports to nova, as far as that is observed. It may be
// disabled.
func isUp(conditions *condition.Conditions) bool {
	ready := conditions.Get(novav1.ComputeServiceReadyCondition)
	return ready != nil && (ready.Status == "True" || ready.Reason == novav1.ServiceDisabledReason || ready.Reason == novav1.HostDrainedReason)
}

// advance chooses the first compute that gets a new image, once hosts have pulled it, and has
// the others follow when it is up with it, or when there is none that could be the first.
func advance(update *novav1.ComputeUpdate, image string, computes []novav1.NovaExternalCompute) {
	if update == nil || update.Verified {
		return
	}
	i := slices.IndexFunc(computes, func(c novav1.NovaExternalCompute) bool { return c.Name == update.First })
	switch {
	case i < 0 || !canTry(&computes[i], image):
		outdated := without(image, computes)
		update.First, update.Verified = choose(image, outdated), len(outdated) == 0
	case isCurrent(&computes[i], image) && isUp(&computes[i].Status.Conditions):
		update.First, update.Verified = "", true
	}
}

func canFollow(c *novav1.NovaExternalCompute, image string) bool {
	return c.DeletionTimestamp.IsZero() && !isPinned(c, image)
}

// canTry reports whether a compute can be, or stay, the first that gets an image.
func canTry(c *novav1.NovaExternalCompute, image string) bool {
	return canFollow(c, image) && !isInRepair(c)
}

// without returns the computes that are to get an image.
func without(image string, computes []novav1.NovaExternalCompute) []*novav1.NovaExternalCompute {
	var all []*novav1.NovaExternalCompute
	for i := range computes {
		if c := &computes[i]; canFollow(c, image) && c.Status.Images[novav1.ComputeComponent] != image {
			all = append(all, c)
		}
	}
	return all
}

// hasPulled reports whether a host has an image, or need not have it before its services are
// restarted.
func hasPulled(c *novav1.NovaExternalCompute, image string) bool {
	return !isDeployed(c) || c.Status.PulledImage == image
}

// isInRepair reports whether a host is down and was disabled by the annotation of its node: an update
// leaves it until it is up again. A step that fails on it would keep others from theirs (maxUnavailable).
func isInRepair(c *novav1.NovaExternalCompute) bool {
	service := c.Status.ComputeService
	return service != nil && !service.Up && service.Disabled && service.DisabledFor != "" && service.DisabledReason == service.DisabledFor
}

// inProgress are the reasons of computes on which a step is about to be run.
var inProgress = []condition.Reason{condition.Reason(edpm.Pending), condition.Reason(edpm.RolloutHeld), condition.Reason(edpm.HostBusy), condition.Reason(edpm.Running)}

// pulls reports whether a host is about to have an image. One on which nothing is run, or on
// which a step fails, is not waited for; it keeps its image.
func pulls(c *novav1.NovaExternalCompute, image string) bool {
	deployed := c.Status.Conditions.Get(condition.DeploymentReadyCondition)
	return !hasPulled(c, image) && !isInRepair(c) && deployed != nil && (deployed.Status == "True" || slices.Contains(inProgress, deployed.Reason))
}

// choose returns which of the computes without an image gets it first, empty while hosts pull
// it and if none has: one that works, so that it says something of the image if it does not
// any more.
func choose(image string, without []*novav1.NovaExternalCompute) string {
	rank := func(c *novav1.NovaExternalCompute) int {
		switch {
		case !ptr.Deref(c.Spec.Deploy, true):
			return 3
		case c.Status.Conditions.IsTrue(condition.ReadyCondition):
			return 0
		case c.Status.Conditions.IsTrue(condition.DeploymentReadyCondition):
			return 1
		}
		return 2
	}
	first, best := "", 0
	for _, c := range without {
		if pulls(c, image) {
			return ""
		}
		if hasPulled(c, image) && canTry(c, image) && (first == "" || cmp.Or(cmp.Compare(rank(c), best), cmp.Compare(c.Name, first)) < 0) {
			first, best = c.Name, rank(c)
		}
	}
	return first
}

// Lagging says which computes of a cell are still to get an image, empty if none are.
func Lagging(cell *novav1.NovaCell, image string) string {
	update, counts := Of(cell), ptr.Deref(cell.Status.Computes, novav1.ComputesStatus{})
	switch {
	case !isOutdated(cell, image):
		return ""
	case update.Image == image && !update.Verified && update.First == "":
		return fmt.Sprintf("the hosts of NovaCell %s have pulled image %s, before anything is restarted: see its status.computes, and the condition DeploymentReady of computes that have failed", cell.Name, image)
	case update.Image == image && update.Pods != "" && counts.Outdated == 0:
		return fmt.Sprintf("all pods of NovaCompute %s run image %s and are up in nova: see its conditions", update.Pods, image)
	}
	return fmt.Sprintf("no compute of NovaCell %s is outdated: see its status.computes", cell.Name)
}
