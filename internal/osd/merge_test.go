package osd

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
)

// items are the sets of a CephCluster as they are stored.
func items(t *testing.T, text string) []any {
	t.Helper()
	var list []any
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	// As a client decodes them: numbers without a fraction are int64.
	return runtime.DeepCopyJSONValue(whole(list)).([]any)
}

func whole(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = whole(v[k])
		}
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	case float64:
		return int64(v)
	}
	return v
}

func typed(t *testing.T, list []any) []cephv1.StorageClassDeviceSet {
	t.Helper()
	ceph := &cephv1.CephCluster{}
	object := map[string]any{"spec": map[string]any{"storage": map[string]any{"storageClassDeviceSets": list}}}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, ceph); err != nil {
		t.Fatal(err)
	}
	return ceph.Spec.Storage.StorageClassDeviceSets
}

const stored = `[
  {"name": "foreign", "count": 2, "encrypted": true, "volumeClaimTemplates": []},
  {"name": "a-0", "count": 1, "portable": true, "encrypted": true, "schedulerName": "theirs", "future": {"field": [1]},
   "resources": {"requests": {"cpu": "2"}},
   "placement": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}}},
   "volumeClaimTemplates": [
     {"metadata": {"name": "data", "annotations": {"crushDeviceClass": "hdd", "crushInitialWeight": "1.5"}, "labels": {"theirs": "l"}}, "spec": {"storageClassName": "old"}},
     {"metadata": {"name": "metadata"}, "spec": {"storageClassName": "fast"}}
   ]},
  {"name": "a-1", "count": 1, "volumeClaimTemplates": [{"metadata": {"annotations": {}}, "spec": {}}]}
]`

// merge plans and merges, and returns the items by name and in order.
func merge(t *testing.T, present []any, spec *ocsv1.StorageClusterSpec, before ...ocsv1.DeviceSetStatus) (map[string]map[string]any, []string) {
	t.Helper()
	kept := runtime.DeepCopyJSONValue(present)
	ceph := Ceph{Exists: true, Sets: present, Placement: map[string]any{"all": asJSON(t, Placements(spec)["all"])}}
	list := decide(t, spec, ceph, before...).Items
	if diff := cmp.Diff(kept, any(present)); diff != "" {
		t.Errorf("what was there has been written to:\n%s", diff)
	}
	byName, order, err := index(list)
	if err != nil {
		t.Fatal(err)
	}
	return byName, order
}

func TestMergeDeviceSets(t *testing.T) {
	set := makeSet("a", 2, 0, func(s *ocsv1.StorageDeviceSet) {
		s.DeviceClass, s.DataPVCTemplate.Name, s.Portable = "ssd", "data", false
	})
	touched := ocsv1.DeviceSetStatus{Name: "a", Placement: ocsv1.PlacementLegacy, Hash: "v2:another:1x0"}
	present := items(t, stored)
	got, order := merge(t, present, specOf(set), touched)
	if diff := cmp.Diff([]string{"foreign", "a-0", "a-1"}, order); diff != "" {
		t.Errorf("the order (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(present[0], any(got["foreign"])); diff != "" {
		t.Errorf("a set of another user has changed:\n%s", diff)
	}
	first := got["a-0"]
	for key, want := range map[string]any{
		"encrypted": true, "schedulerName": "theirs", "future": map[string]any{"field": []any{int64(1)}}, "portable": nil, "tuneFastDeviceClass": nil,
		"resources": map[string]any{"requests": map[string]any{"cpu": "2"}}, "count": int64(1),
	} {
		if diff := cmp.Diff(want, first[key]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
	if placement := typed(t, []any{first})[0].Placement; placement.NodeAffinity != nil || len(placement.TopologySpreadConstraints) != 1 {
		t.Errorf("the placement is %+v; want constraints and nothing else", placement)
	}
	templates := first["volumeClaimTemplates"].([]any)
	if diff := cmp.Diff(map[string]any{
		"name": "data", "annotations": map[string]any{"crushDeviceClass": "ssd", "crushInitialWeight": "1.5"}, "labels": map[string]any{"theirs": "l"},
	}, templates[0].(map[string]any)["metadata"]); diff != "" {
		t.Errorf("the template of the data (-want +got):\n%s", diff)
	}
	if class := templates[0].(map[string]any)["spec"].(map[string]any)["storageClassName"]; class != "gp2" {
		t.Errorf("the class of the data is %v; want that of the spec", class)
	}
	if diff := cmp.Diff(present[1].(map[string]any)["volumeClaimTemplates"].([]any)[1], templates[1]); diff != "" || len(templates) != 2 {
		t.Errorf("the template of the metadata is not there as it was: %v", templates)
	}
}

func TestMergingAgainChangesNothing(t *testing.T) {
	spec := specOf(makeSet("a", 3, 0), makeSet("b", 1, 3))
	for name, before := range map[string][]ocsv1.DeviceSetStatus{
		"of Legacy sets":   nil,
		"of sets of ours":  {{Name: "a", Placement: "Constraints"}, {Name: "b", Placement: "Constraints"}},
		"of a touched one": {{Name: "a", Placement: "Legacy", Hash: "v2:another:1x0"}},
	} {
		first := decide(t, spec, Ceph{Exists: true, Sets: items(t, stored)}, before...).Items
		again := decide(t, spec, Ceph{Exists: true, Sets: first}, before...).Items
		if diff := cmp.Diff(first, again); diff != "" {
			t.Errorf("merging %s again changes:\n%s", name, diff)
		}
	}
}

func TestLegacySetsStayToTheLetter(t *testing.T) {
	present := items(t, stored)
	got, order := merge(t, present, specOf(makeSet("a", 2, 0), makeSet("b", 1, 1)))
	for i, name := range []string{"foreign", "a-0", "a-1"} {
		if diff := cmp.Diff(present[i], any(got[name])); diff != "" {
			t.Errorf("%s has changed:\n%s", name, diff)
		}
	}
	if diff := cmp.Diff([]string{"foreign", "a-0", "a-1", "b-0"}, order); diff != "" {
		t.Errorf("the order (-want +got):\n%s", diff)
	}
}

func TestSetsThatAreNoLongerWantedGo(t *testing.T) {
	for name, c := range map[string]struct {
		spec   *ocsv1.StorageClusterSpec
		before []ocsv1.DeviceSetStatus
		want   []string
	}{
		"of a set that left the spec":        {specOf(), []ocsv1.DeviceSetStatus{{Name: "a", StorageClassDeviceSets: []string{"a-0", "a-1"}}}, []string{"foreign"}},
		"of a replica that was lowered":      {specOf(makeSet("a", 1, 1)), []ocsv1.DeviceSetStatus{{Name: "a", Placement: "Constraints", StorageClassDeviceSets: []string{"a-0", "a-1"}}}, []string{"foreign", "a-0"}},
		"but not those that never were ours": {specOf(), nil, []string{"foreign", "a-0", "a-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, order := merge(t, items(t, stored), c.spec, c.before...)
			if diff := cmp.Diff(c.want, order); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	single := specOf(makeSet("a", 2, 0))
	single.DeviceSetLayout = ocsv1.LayoutSingle
	split := ocsv1.DeviceSetStatus{Name: "a", Placement: "Constraints", StorageClassDeviceSets: []string{"a-0", "a-1"}}
	if _, order := merge(t, items(t, stored), single, split); !cmp.Equal(order, []string{"foreign", "a"}) {
		t.Errorf("in the other layout there are %v", order)
	}
}

func TestItemsThatAreNoObjects(t *testing.T) {
	if _, err := Decide(specOf(), zone, Ceph{Exists: true, Sets: []any{"x"}}, Record{}, nil); err == nil || !contains(err.Error(), "storageClassDeviceSets[0] of the CephCluster is x") {
		t.Errorf("the error is %v", err)
	}
}

// A device set that grows has OSDs like those that it has, whatever this project knows of
// them.
func TestANewPartHasWhatItsSiblingsHave(t *testing.T) {
	const part = `{"name":"a-%d","count":1,"portable":true,"tuneDeviceClass":true,"config":{"osdsPerDevice":"1"},"schedulerName":"theirs","futureField":{"x":[1]},
 "placement":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["z%d"]}]}]}}},
 "volumeClaimTemplates":[
  {"metadata":{"name":"data","annotations":{"crushDeviceClass":"hdd","crushInitialWeight":"1.5"}},"spec":{"storageClassName":"gp2"}},
  {"metadata":{"name":"metadata"},"spec":{"storageClassName":"nvme"}},{"metadata":{"name":"wal"},"spec":{"storageClassName":"nvme"}}]}`
	present := items(t, "["+fmt.Sprintf(part, 0, 0)+","+fmt.Sprintf(part, 1, 1)+","+fmt.Sprintf(part, 2, 2)+"]")
	spec := specOf(makeSet("a", 1, 4, func(s *ocsv1.StorageDeviceSet) { s.DeviceClass, s.DeviceType = "hdd", "hdd" }))
	d, err := Decide(spec, zone, Ceph{Exists: true, Sets: present}, Record{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Items) != 4 {
		t.Fatalf("there are %d parts", len(d.Items))
	}
	old, added := present[0].(map[string]any), d.Items[3].(map[string]any)
	for _, field := range []string{"config", "schedulerName", "futureField", "tuneDeviceClass", "count"} {
		if diff := cmp.Diff(old[field], added[field]); diff != "" {
			t.Errorf("%s is not that of its siblings: %s", field, diff)
		}
	}
	templates, before := added["volumeClaimTemplates"].([]any), old["volumeClaimTemplates"].([]any)
	if len(templates) != 3 {
		t.Fatalf("the new part has %d templates, its siblings 3", len(templates))
	}
	if diff := cmp.Diff(before[1:], templates[1:]); diff != "" {
		t.Errorf("the claims of metadata and WAL: %s", diff)
	}
	annotations, _, _ := unstructured.NestedStringMap(templates[0].(map[string]any), "metadata", "annotations")
	if annotations["crushInitialWeight"] != "1.5" || annotations["crushDeviceClass"] != "hdd" {
		t.Errorf("the annotations of the data claim are %v", annotations)
	}
	if added["name"] != "a-3" || strings.Contains(fmt.Sprint(added["placement"]), "z0") {
		t.Errorf("the name and the zone are not those of a sibling: %v", added)
	}
}
