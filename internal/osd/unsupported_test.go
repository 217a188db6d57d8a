package osd

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
)

// A field of ocs-operator is named, whatever its type: the first is of its sample.
func TestFieldsOfOcsOperatorAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		spec                 string
		ignored, unsupported []string
	}{
		"none":                   {"storageDeviceSets: [{name: a, count: 3}]", nil, nil},
		"an object":              {"monPVCTemplate: {spec: {storageClassName: gp2-csi}}", []string{"spec.monPVCTemplate"}, nil},
		"a string and a boolean": {"{monDataDirHostPath: /var/lib/rook, hostNetwork: false}", []string{"spec.hostNetwork", "spec.monDataDirHostPath"}, nil},
		"a list":                 {"overprovisionControl: [{capacity: 1Ti}]", []string{"spec.overprovisionControl"}, nil},
		"below encryption":       {"encryption: {clusterWide: true, kms: {enable: true}}", []string{"spec.encryption.kms"}, nil},
		"below arbiter":          {"arbiter: {enable: true, disableMasterNodeToleration: true}", []string{"spec.arbiter.disableMasterNodeToleration"}, nil},
		"of the second set":      {"storageDeviceSets: [{name: a}, {name: b, metadataPVCTemplate: {}, walPVCTemplate: {}}]", nil, []string{"spec.storageDeviceSets[1].metadataPVCTemplate", "spec.storageDeviceSets[1].walPVCTemplate"}},
		"of other types": {"storageDeviceSets: [{name: a, initialWeight: 1.5TiB, primaryAffinity: \"0.5\", config: {tuneFastDeviceClass: true}}]", nil,
			[]string{"spec.storageDeviceSets[0].initialWeight", "spec.storageDeviceSets[0].primaryAffinity", "spec.storageDeviceSets[0].config"}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &ocsv1.StorageClusterSpec{}
			if err := yaml.UnmarshalStrict([]byte(c.spec), spec); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.ignored, Ignored(spec)); diff != "" {
				t.Errorf("without effect: %s", diff)
			}
			if diff := cmp.Diff(c.unsupported, Unsupported(spec)); diff != "" {
				t.Errorf("not supported: %s", diff)
			}
		})
	}
}
