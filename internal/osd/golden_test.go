package osd

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
)

var update = flag.Bool("update", false, "write what becomes of each CephCluster into testdata")

// story is a CephCluster that another user wrote, and the StorageCluster that comes to
// it. It does what the controller and the API server do with a decision.
type story struct {
	t      *testing.T
	spec   *ocsv1.StorageClusterSpec
	ceph   map[string]any // its spec
	record Record
	claims []*corev1.PersistentVolumeClaim
	told   strings.Builder
}

func read(t *testing.T, file string) *story {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	in := struct {
		CephCluster    map[string]any           `json:"cephCluster"`
		StorageCluster ocsv1.StorageClusterSpec `json:"storageCluster"`
	}{}
	if err := yaml.UnmarshalStrict(text, &in); err != nil {
		t.Fatal(err)
	}
	in.StorageCluster.DeviceSetLayout = ocsv1.LayoutSplit
	if in.StorageCluster.OSDPlacement.Mode == "" {
		in.StorageCluster.OSDPlacement.Mode = ocsv1.OSDPlacementSeedPhase1
	}
	s := &story{t: t, spec: &in.StorageCluster, ceph: whole(in.CephCluster).(map[string]any)}
	s.rook()
	return s
}

// rook makes a claim for each OSD of the CephCluster.
func (s *story) rook() {
	s.claims = nil
	for _, item := range s.present().Sets {
		set := item.(map[string]any)
		for i := range int(countOf(set)) {
			s.claims = append(s.claims, makeClaim(nameOf(set), i))
		}
	}
}

func (s *story) present() Ceph { return NewCeph(map[string]any{"spec": runtime.DeepCopyJSON(s.ceph)}) }

// reconcile writes what is decided, and tells what that changes. It reports whether
// anything could be written.
func (s *story) reconcile(event string) bool {
	s.t.Helper()
	d, err := Decide(s.spec, zone, s.present(), s.record, s.claims)
	if err != nil {
		s.t.Fatal(err)
	}
	fmt.Fprintf(&s.told, "== %s\n", event)
	if orphans := Orphans(d.Dropped, nil, s.claims); len(orphans) > 0 {
		fmt.Fprintf(&s.told, "refused: %d OSDs of %s would have no set\n", len(orphans), strings.Join(d.Dropped, ", "))
		return false
	}
	if len(d.Problems) > 0 {
		fmt.Fprintf(&s.told, "refused: %s\n", d.Problems[0].Message)
		return false
	}
	desired, err := d.Spec()
	if err != nil {
		s.t.Fatal(err)
	}
	before := flat(s.ceph)
	apply(s.ceph, desired)
	s.told.WriteString(differences(before, flat(s.ceph)))
	s.record = recordOf(d)
	return true
}

// apply does what server-side apply with force does: maps are merged, everything else
// is replaced.
func apply(to, from map[string]any) {
	for key, value := range runtime.DeepCopyJSON(from) {
		present, isMap := to[key].(map[string]any)
		if own, ok := value.(map[string]any); ok && isMap {
			apply(present, own)
		} else {
			to[key] = value
		}
	}
}

func recordOf(d *Decision) Record {
	var record Record
	for i := range d.DeviceSets {
		set := &d.DeviceSets[i]
		record.DeviceSets = append(record.DeviceSets, ocsv1.DeviceSetStatus{Name: set.Name, Hash: set.Hash, Placement: set.Placement, StorageClassDeviceSets: set.Names()})
	}
	for _, p := range d.Placements {
		record.Placements = append(record.Placements, ocsv1.DaemonPlacementStatus{Name: p.Name, Kept: p.Kept, Hash: p.Hash})
	}
	return record
}

// flat returns the fields by path, with device sets by name and all that is below a
// part of a placement in one line.
func flat(spec map[string]any) map[string]string {
	lines := map[string]string{}
	var walk func(path string, depth int, value any)
	walk = func(path string, depth int, value any) {
		if m, ok := value.(map[string]any); ok && len(m) > 0 && depth > 0 {
			for key, v := range m {
				walk(path+"."+key, depth-1, v)
			}
			return
		}
		text, _ := json.Marshal(value)
		lines[path] = string(text)
	}
	for key, value := range spec {
		if key != "storage" {
			walk(key, 2, value)
			continue
		}
		for field, value := range value.(map[string]any) {
			if items, ok := value.([]any); ok {
				for _, item := range items {
					set := item.(map[string]any)
					walk("set "+nameOf(set), 2, set)
				}
			} else {
				walk("storage."+field, 0, value)
			}
		}
	}
	return lines
}

func differences(before, after map[string]string) string {
	paths := maps.Clone(before)
	maps.Copy(paths, after)
	var text strings.Builder
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		was, had := before[path]
		is, has := after[path]
		if had && has && was == is {
			continue
		}
		if had {
			fmt.Fprintf(&text, "- %s: %s\n", path, was)
		}
		if has {
			fmt.Fprintf(&text, "+ %s: %s\n", path, is)
		}
	}
	if text.Len() == 0 {
		return "nothing\n"
	}
	return text.String()
}

// events happen to a CephCluster one after the other.
func (s *story) events() string {
	found := runtime.DeepCopyJSON(s.ceph)
	s.reconcile("the StorageCluster comes to it")
	s.reconcile("nothing happens")
	for i := range s.record.DeviceSets {
		s.record.DeviceSets[i].Hash = "0123456789abcdef"
	}
	s.reconcile("the operator is upgraded from a version with other hashes")
	s.record, s.ceph = Record{}, found
	s.reconcile("the CephCluster is restored as it was, with the manager down")
	s.rook()
	own := ocsv1.StorageDeviceSet{Name: "new", Count: 1, Replica: 1, DataPVCTemplate: s.spec.StorageDeviceSets[0].DataPVCTemplate}
	s.spec.StorageDeviceSets = append(s.spec.StorageDeviceSets, own)
	if !s.reconcile("a new device set is added next to it") {
		s.spec.StorageDeviceSets[1].Encrypted = ptr.To(true)
		s.reconcile("it says that it is encrypted")
	}
	first := &s.spec.StorageDeviceSets[0]
	before := *first
	if before.Replica > 1 {
		first.Replica, first.Count = before.Replica-1, before.Count*before.Replica/(before.Replica-1)
		s.reconcile("the first set has fewer parts with as many OSDs in all")
	}
	*first = before
	first.Count++
	s.reconcile("the count of the first set is raised")
	s.rook()
	if s.record.DeviceSets[0].Placement == ocsv1.PlacementLegacy {
		first.TopologyKey = "rack"
		s.reconcile("another topologyKey of the first set")
		s.record.Replaced = []string{first.Name}
		s.reconcile("the annotation names it")
	}
	s.spec.Placement = map[string]cephv1.Placement{"all": {Tolerations: []corev1.Toleration{{Key: "asked", Operator: corev1.TolerationOpExists}}}}
	s.reconcile("spec.placement.all is changed")
	return s.told.String()
}

// The difference in each kind of CephCluster is what a user asked for.
func TestWhatBecomesOfACephCluster(t *testing.T) {
	files, err := filepath.Glob("testdata/ceph/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are %d files, error %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			got := read(t, file).events()
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", golden, diff)
			}
		})
	}
}
