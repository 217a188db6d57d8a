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

// MergeDeviceSets returns the whole list spec.storage.storageClassDeviceSets, given
// what it has now, the plan, and what the status said before. Rook's definition
// has the list as one value, so what others wrote into it has to be written again:
//
//   - sets that are nobody's of the plan, or of the plan before, come last, as they are;
//   - Legacy sets stay as they are;
//   - of the other sets, fields that this project does not know or that the spec says
//     nothing of stay: encrypted, schedulerName, claims of metadata, resources.
//
// The items are in the form of JSON, since Rook may have fields that no type here
// has. The error says which item is not an object.
func MergeDeviceSets(present []any, spec *ocsv1.StorageClusterSpec, plan []DeviceSet, before []ocsv1.DeviceSetStatus) ([]any, error) {
	byName, order, err := index(present)
	if err != nil {
		return nil, err
	}
	var result []any
	ours := ownNames(spec, before)
	for i := range plan {
		for j := range plan[i].Parts {
			part := &plan[i].Parts[j]
			item, err := mergedSet(byName[part.Name], part, plan[i].Placement)
			if err != nil {
				return nil, err
			}
			result = append(result, item)
		}
	}
	for _, name := range order {
		if !ours.Has(name) {
			result = append(result, byName[name])
		}
	}
	return result, nil
}

// ownNames are the names that this project gave or gives to sets, in either layout.
func ownNames(spec *ocsv1.StorageClusterSpec, before []ocsv1.DeviceSetStatus) sets.Set[string] {
	names := sets.New(AllNames(ocsv1.LayoutSplit, spec.StorageDeviceSets)...)
	names.Insert(AllNames(ocsv1.LayoutSingle, spec.StorageDeviceSets)...)
	for _, b := range before {
		names.Insert(b.StorageClassDeviceSets...)
	}
	return names
}

func index(items []any) (byName map[string]map[string]any, order []string, err error) {
	byName = map[string]map[string]any{}
	for i, item := range items {
		set, ok := item.(map[string]any)
		if !ok {
			return nil, nil, fmt.Errorf("spec.storage.storageClassDeviceSets[%d] of the CephCluster is %v: it has to be an object", i, item)
		}
		name, _, _ := unstructured.NestedString(set, "name")
		byName[name] = set
		order = append(order, name)
	}
	return byName, order, nil
}

// replaced are the fields of a set that are taken whole, and away with.
var replaced = []string{"placement", "preparePlacement", "portable"}

func mergedSet(present map[string]any, part *cephv1.StorageClassDeviceSet, placement ocsv1.DeviceSetPlacement) (map[string]any, error) {
	if placement == ocsv1.PlacementLegacy {
		return present, nil
	}
	own, err := runtime.DefaultUnstructuredConverter.ToUnstructured(part)
	if err != nil {
		return nil, fmt.Errorf("converting StorageClassDeviceSet %s: %w", part.Name, err)
	}
	merged := maps.Clone(present)
	if merged == nil {
		return own, nil
	}
	maps.DeleteFunc(merged, func(key string, _ any) bool { return slices.Contains(replaced, key) })
	const templates = "volumeClaimTemplates"
	own[templates] = mergedTemplates(present[templates], own[templates])
	maps.Copy(merged, own)
	return merged, nil
}

// mergedTemplates returns our template, which is that of the data, with the
// annotations and labels that it had beside ours, and the others as they are.
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

// isData tells whether a template is that of the data: a single one always is, as
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
