package osd

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
)

// merge sets the list spec.storage.storageClassDeviceSets. Rook's definition has it as
// one value, so what others wrote into it has to be written again: sets that this
// project never wrote stay as they are, everything stays in its place, and new sets
// come last. Sets that were written before and that no one asks for any more go.
func (d *Decision) merge(items map[string]map[string]any, order []string, before []ocsv1.DeviceSetStatus) {
	ours := sets.New[string]()
	for i := range before {
		ours.Insert(before[i].StorageClassDeviceSets...)
	}
	for _, name := range order {
		if item := d.item(name); item != nil {
			d.Items = append(d.Items, item)
		} else if !ours.Has(name) {
			d.Items = append(d.Items, items[name])
		} else {
			d.Dropped = append(d.Dropped, name)
		}
	}
	for i := range d.DeviceSets {
		for _, item := range d.DeviceSets[i].items {
			if items[nameOf(item)] == nil {
				d.Items = append(d.Items, item)
			}
		}
	}
}

// item returns what is to be written of a StorageClassDeviceSet, nil if nothing.
func (d *Decision) item(name string) map[string]any {
	for i := range d.DeviceSets {
		for _, item := range d.DeviceSets[i].items {
			if nameOf(item) == name {
				return item
			}
		}
	}
	return nil
}

// Spec returns the fields of the spec of the CephCluster to be written.
func (d *Decision) Spec() (map[string]any, error) {
	content := cephv1.CephClusterSpec{Placement: map[string]cephv1.Placement{}}
	for _, p := range d.Placements {
		if !p.Kept {
			content.Placement[p.Name] = p.Placement
		}
	}
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&content)
	if err != nil {
		return nil, fmt.Errorf("converting the placement: %w", err)
	}
	if len(d.Items) == 0 {
		return spec, nil
	}
	return spec, unstructured.SetNestedSlice(spec, d.Items, "storage", "storageClassDeviceSets")
}

func index(items []any) (byName map[string]map[string]any, order []string, err error) {
	byName = map[string]map[string]any{}
	for i, item := range items {
		set, ok := item.(map[string]any)
		if !ok {
			return nil, nil, fmt.Errorf("spec.storage.storageClassDeviceSets[%d] of the CephCluster is %v: it must be an object", i, item)
		}
		name := nameOf(set)
		byName[name] = set
		order = append(order, name)
	}
	return byName, order, nil
}

// replaced are the fields of a set that are taken whole, and away with.
var replaced = []string{"placement", "preparePlacement", "portable"}

// merged returns one of the StorageClassDeviceSets of a device set as it is to be
// written. Of one that is there already, fields that this project does not know or
// that the spec says nothing of stay: schedulerName, claims of metadata, resources. So
// does the encryption of one that has OSDs. A new one has what one next to it in the
// device set has: its OSDs are like the others.
func (p *planner) merged(parts []cephv1.StorageClassDeviceSet, i int) (map[string]any, error) {
	name := parts[i].Name
	own, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&parts[i])
	if err != nil {
		return nil, fmt.Errorf("converting StorageClassDeviceSet %s: %w", name, err)
	}
	merged := maps.Clone(p.items[name])
	if merged == nil {
		merged = maps.Clone(p.sibling(parts))
	}
	if merged == nil {
		return own, nil
	}
	if p.occupied.Has(name) {
		delete(own, "encrypted")
	}
	maps.DeleteFunc(merged, func(key string, _ any) bool { return slices.Contains(replaced, key) })
	const templates = "volumeClaimTemplates"
	own[templates] = mergedTemplates(merged[templates], own[templates])
	maps.Copy(merged, own)
	return merged, nil
}

// sibling returns the first of the StorageClassDeviceSets that there is already.
func (p *planner) sibling(parts []cephv1.StorageClassDeviceSet) map[string]any {
	for i := range parts {
		if present := p.items[parts[i].Name]; present != nil {
			return present
		}
	}
	return nil
}

// mergedTemplates returns our template, which is that of the data, with the
// annotations and labels that it had next to ours, and the others as they are.
func mergedTemplates(present, own any) []any {
	result, _ := own.([]any)
	others, _ := present.([]any)
	for _, other := range others {
		template, ok := other.(map[string]any)
		if !ok {
			continue
		}
		if isData(template, len(others)) {
			result[0] = mergedTemplate(template, result[0].(map[string]any))
			continue
		}
		result = append(result, other)
	}
	return result
}

// isData reports whether a template is that of the data: a single one always is, as
// Rook sees it.
func isData(template map[string]any, of int) bool {
	name, _, _ := unstructured.NestedString(template, "metadata", "name")
	return of == 1 || name == "" || name == cephv1.DataTemplate
}

// mergedTemplate never adds an empty object, so that merging again gives the same.
func mergedTemplate(present, own map[string]any) map[string]any {
	metadata, _ := own["metadata"].(map[string]any)
	merged := maps.Clone(metadata)
	if merged == nil {
		merged = map[string]any{}
	}
	for _, field := range []string{"labels", "annotations"} {
		had, _, _ := unstructured.NestedMap(present, "metadata", field)
		if len(had) == 0 {
			continue
		}
		has, _ := metadata[field].(map[string]any)
		maps.Copy(had, has)
		merged[field] = had
	}
	template := maps.Clone(own)
	if len(merged) > 0 {
		template["metadata"] = merged
	}
	return template
}
