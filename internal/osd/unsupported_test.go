package osd

import (
	"strings"
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
		"of a later version":     {"nvmeof: {gateways: 2}", []string{"spec.nvmeof"}, nil},
		"below node topologies":  {"nodeTopologies: {arbiterLocation: c, labels: {zone: [a]}}", []string{"spec.nodeTopologies.labels"}, nil},
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

// The API server drops a field that a definition does not have, and strict clients alone are
// told: ours has all that ocs-operator's has, at its commit ab00543d (api/v1/storagecluster_types.go).
func TestEveryFieldOfOcsOperatorIsKnown(t *testing.T) {
	for name, c := range map[string]struct {
		into   any
		fields string
	}{
		"spec": {&ocsv1.StorageClusterSpec{}, `labelSelector externalStorage hostNetwork placement resources resourceProfile encryption storageDeviceSets monPVCTemplate
			monDataDirHostPath multiCloudGateway nfs nvmeof csi monitoring network managedResources flexibleScaling nodeTopologies arbiter mirroring
			overprovisionControl providerAPIServerServiceType enableCephTools logCollector backingStorageClasses`},
		"spec.storageDeviceSets[]": {&ocsv1.StorageDeviceSet{}, `name count replica deviceType deviceClass initialWeight primaryAffinity portable resources preparePlacement
			placement config dataPVCTemplate metadataPVCTemplate walPVCTemplate encrypted`},
		"spec.encryption":     {&ocsv1.EncryptionSpec{}, "enable clusterWide storageClass storageClassName kms keyRotation"},
		"spec.arbiter":        {&ocsv1.ArbiterSpec{}, "enable disableMasterNodeToleration arbiterMonPVCTemplate"},
		"spec.nodeTopologies": {&ocsv1.NodeTopologyMap{}, "labels arbiterLocation"},
	} {
		for _, field := range strings.Fields(c.fields) {
			if err := yaml.UnmarshalStrict([]byte(field+": null"), c.into); err != nil {
				t.Errorf("%s.%s would be dropped in silence: %v", name, field, err)
			}
		}
	}
}
