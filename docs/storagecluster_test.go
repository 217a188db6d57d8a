package docs_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
	"github.com/edpm-operators/edpm-operators/internal/osd"
	"github.com/edpm-operators/edpm-operators/test/envtest"
)

// own is a constraint that a person writes.
var own = []corev1.TopologySpreadConstraint{{
	MaxSkew: 1, TopologyKey: "example.com/row", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: nil,
}}

// constraintCases are the rows of the table in docs/storagecluster.md.
var constraintCases = []struct {
	name   string
	domain ocsv1.FailureDomain
	change func(*ocsv1.StorageClusterSpec, *ocsv1.StorageDeviceSet)
}{
	{"zones", ocsv1.FailureDomainZone, nil},
	{"racks", ocsv1.FailureDomainRack, nil},
	{"hosts (`flexibleScaling`), or a single node", ocsv1.FailureDomainHost, nil},
	{"`topologyKey: rack` in a cluster of zones", ocsv1.FailureDomainZone, func(_ *ocsv1.StorageClusterSpec, set *ocsv1.StorageDeviceSet) { set.TopologyKey = "rack" }},
	{"mode `FailureDomain`, zones", ocsv1.FailureDomainZone, func(spec *ocsv1.StorageClusterSpec, _ *ocsv1.StorageDeviceSet) {
		spec.OSDPlacement.Mode = ocsv1.OSDPlacementFailureDomain
	}},
	{"mode `FailureDomain`, hosts", ocsv1.FailureDomainHost, func(spec *ocsv1.StorageClusterSpec, _ *ocsv1.StorageDeviceSet) {
		spec.OSDPlacement.Mode = ocsv1.OSDPlacementFailureDomain
	}},
	{"mode `FailureDomain`, zones, `deviceClass: fast`", ocsv1.FailureDomainZone, func(spec *ocsv1.StorageClusterSpec, set *ocsv1.StorageDeviceSet) {
		spec.OSDPlacement.Mode, set.DeviceClass = ocsv1.OSDPlacementFailureDomain, "fast"
	}},
	{"constraints in `placement`", ocsv1.FailureDomainZone, func(_ *ocsv1.StorageClusterSpec, set *ocsv1.StorageDeviceSet) {
		set.Placement.TopologySpreadConstraints = own
	}},
	{"constraints in `preparePlacement`", ocsv1.FailureDomainZone, func(_ *ocsv1.StorageClusterSpec, set *ocsv1.StorageDeviceSet) {
		set.PreparePlacement = &cephv1.Placement{TopologySpreadConstraints: own}
	}},
	{"other parts of `placement`, zones", ocsv1.FailureDomainZone, func(_ *ocsv1.StorageClusterSpec, set *ocsv1.StorageDeviceSet) {
		set.Placement.PodAntiAffinity = &corev1.PodAntiAffinity{}
	}},
	{"`spec.placement.osd: {}`, zones", ocsv1.FailureDomainZone, func(spec *ocsv1.StorageClusterSpec, _ *ocsv1.StorageDeviceSet) {
		spec.Placement = map[string]cephv1.Placement{"osd": {}}
	}},
}

func TestTableOfConstraintsIsTrue(t *testing.T) {
	page, err := os.ReadFile(envtest.File("docs", "storagecluster.md"))
	if err != nil {
		t.Fatal(err)
	}
	table := "| case | Jobs that prepare | daemons |\n|---|---|---|\n"
	for _, c := range constraintCases {
		table += constraintRow(t, c.name, c.domain, c.change)
	}
	if !strings.Contains(string(page), "\n"+table+"\n") {
		t.Errorf("docs/storagecluster.md should have this table:\n%s", table)
	}
}

// constraintRow is what internal/osd makes of a case.
func constraintRow(t *testing.T, name string, domain ocsv1.FailureDomain, change func(*ocsv1.StorageClusterSpec, *ocsv1.StorageDeviceSet)) string {
	t.Helper()
	spec := &ocsv1.StorageClusterSpec{StorageDeviceSets: []ocsv1.StorageDeviceSet{{Name: "set", Count: 1, Replica: 3}}}
	if change != nil {
		change(spec, &spec.StorageDeviceSets[0])
	}
	decision, err := osd.Decide(spec, osd.Key(domain), osd.Ceph{}, osd.Record{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	first := decision.DeviceSets[0].Parts[0]
	return fmt.Sprintf("| %s | %s | %s |\n", name, constraints(*first.PreparePlacement), constraints(first.Placement))
}

func constraints(p cephv1.Placement) string {
	var all []string
	for _, c := range p.TopologySpreadConstraints {
		if c.TopologyKey == own[0].TopologyKey {
			all = append(all, "those")
			continue
		}
		strength := map[corev1.UnsatisfiableConstraintAction]string{corev1.DoNotSchedule: "hard", corev1.ScheduleAnyway: "soft"}[c.WhenUnsatisfiable]
		all = append(all, fmt.Sprintf("`%s` %s, %s", c.TopologyKey, strength, counted(c)))
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, "; ")
}

// counted says which pods a constraint counts.
func counted(c corev1.TopologySpreadConstraint) string {
	words := map[string]string{cephv1.AppOSD: "OSDs", cephv1.AppOSDPrepare: "Jobs"}
	var all []string
	suffix := ""
	for _, e := range c.LabelSelector.MatchExpressions {
		if e.Key != cephv1.AppLabel {
			suffix = fmt.Sprintf(" with `%s` %s", e.Key, strings.Join(e.Values, ", "))
			continue
		}
		for _, v := range e.Values {
			all = append(all, words[v])
		}
	}
	return strings.Join(all, " and ") + suffix
}
