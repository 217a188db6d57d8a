package images

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	"github.com/edpm-operators/edpm-operators/apis/common"
)

// Released is an object that records the images of its components.
type Released interface {
	GetAnnotations() map[string]string
	GetConditions() *condition.Conditions
	GetRelease() *common.Release
}

// Record chooses the images of an object's components, before they are used, and has
// condition UpdateAvailable name those that the operators bring instead.
func Record(obj Released, components map[string]Component) {
	release := obj.GetRelease()
	*release = Choose(release.Images, components, obj.GetAnnotations()[common.UpdateAnnotation])
	if release.Update == nil {
		return
	}
	var changes []string
	for _, name := range slices.Sorted(maps.Keys(release.Update.Images)) {
		changes = append(changes, fmt.Sprintf("%s from %s to %s", name, release.Images[name], release.Update.Images[name]))
	}
	c := condition.TrueCondition(common.UpdateAvailableCondition, "The operators bring other images: %s. Nothing changes until they are accepted: set annotation %s to %s, or run kubectl edpm update",
		strings.Join(changes, ", "), common.UpdateAnnotation, release.Update.ID)
	c.Reason = common.NewImagesReason
	obj.GetConditions().Set(c)
}

// Component has what decides about the image of a component of an object, the first of
// which wins that is not empty: what its spec names, what it runs although nothing was
// recorded yet, what the operators bring.
type Component struct {
	Spec, Running, Default string
	// Program of the image, for messages.
	Program string
}

// Choose returns the image of each component that has one, and the update that the operators
// bring. recorded are the images chosen before: they stay, unless accepted is the ID of what
// the operators bring.
func Choose(recorded map[string]string, components map[string]Component, accepted string) common.Release {
	id, chosen, other := identify(components), map[string]string{}, map[string]string{}
	for name, c := range components {
		taken := ""
		if accepted == id {
			taken = c.Default
		}
		image := cmp.Or(c.Spec, taken, recorded[name], c.Running, c.Default)
		if image == "" {
			continue
		}
		chosen[name] = image
		if c.Spec == "" && c.Default != "" && c.Default != image {
			other[name] = c.Default
		}
	}
	release := common.Release{Images: chosen}
	if len(other) > 0 {
		release.Update = &common.Update{ID: id, Images: other}
	}
	return release
}

// identify returns the same for the same images of the operators.
func identify(components map[string]Component) string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(components)) {
		fmt.Fprintf(sum, "%s=%s\n", name, components[name].Default)
	}
	return hex.EncodeToString(sum.Sum(nil))[:8]
}
