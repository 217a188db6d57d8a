package glance

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

const (
	swift = "[DEFAULT]\nenabled_backends = default_backend:swift\n"
	file  = "[DEFAULT]\nenabled_backends = default_backend:file\n"
)

func TestEffectiveInheritsWhatAnAPIDoesNotSay(t *testing.T) {
	request := resource.MustParse("10G")
	selector := map[string]string{"a": "b"}
	parent := glancev1.GlanceSpec{
		NodeSelector: &selector, TopologyRef: &topologyv1.TopologyRef{Name: "parent"},
		CustomServiceConfig: swift, CustomServiceConfigSecrets: []string{"s"},
		Storage: glancev1.Storage{StorageClass: "c", StorageRequest: &request, External: ptr.To(true)},
	}
	inherited := glancev1.GlanceAPITemplate{Type: glancev1.LayoutSplit, APIService: glancev1.APIService{
		NodeSelector: parent.NodeSelector, TopologyRef: parent.TopologyRef, CustomServiceConfig: swift,
		CustomServiceConfigSecrets: []string{"s"}, Storage: parent.Storage,
	}}
	for name, c := range map[string]struct {
		api    glancev1.GlanceAPITemplate
		change func(*glancev1.GlanceAPITemplate)
	}{
		"nothing is said": {glancev1.GlanceAPITemplate{}, func(*glancev1.GlanceAPITemplate) {}},
		"external is false under true": {
			glancev1.GlanceAPITemplate{APIService: glancev1.APIService{Storage: glancev1.Storage{External: ptr.To(false)}}},
			func(a *glancev1.GlanceAPITemplate) { a.Storage.External = ptr.To(false) },
		},
		"a Topology is opted out of": {
			glancev1.GlanceAPITemplate{APIService: glancev1.APIService{TopologyRef: &topologyv1.TopologyRef{}}},
			func(a *glancev1.GlanceAPITemplate) { a.TopologyRef = nil },
		},
		"a node selector is opted out of": {
			glancev1.GlanceAPITemplate{APIService: glancev1.APIService{NodeSelector: &map[string]string{}}},
			func(a *glancev1.GlanceAPITemplate) { a.NodeSelector = &map[string]string{} },
		},
		"another storage class with the same size": {
			glancev1.GlanceAPITemplate{APIService: glancev1.APIService{Storage: glancev1.Storage{StorageClass: "d"}}},
			func(a *glancev1.GlanceAPITemplate) { a.Storage.StorageClass = "d" },
		},
		"a configuration takes the place of the other, and decides the layout": {
			glancev1.GlanceAPITemplate{APIService: glancev1.APIService{CustomServiceConfig: file}},
			func(a *glancev1.GlanceAPITemplate) { a.CustomServiceConfig, a.Type = file, glancev1.LayoutSingle },
		},
		"a layout stays": {
			glancev1.GlanceAPITemplate{Type: glancev1.LayoutEdge},
			func(a *glancev1.GlanceAPITemplate) { a.Type = glancev1.LayoutEdge },
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := parent
			spec.GlanceAPIs = map[string]glancev1.GlanceAPITemplate{"x": c.api}
			want := *inherited.DeepCopy()
			c.change(&want)
			before := c.api.DeepCopy()
			if diff := cmp.Diff(want, Effective(spec, "x")); diff != "" {
				t.Errorf("what is in force differs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(*before, spec.GlanceAPIs["x"]); diff != "" {
				t.Errorf("the spec was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestExternal(t *testing.T) {
	request := resource.MustParse("1G")
	for name, c := range map[string]struct {
		storage glancev1.Storage
		want    bool
	}{
		"without a size there are no claims": {glancev1.Storage{}, true},
		"with a size there are":              {glancev1.Storage{StorageRequest: &request}, false},
		"true counts more than a size":       {glancev1.Storage{StorageRequest: &request, External: ptr.To(true)}, true},
		"false counts without a size":        {glancev1.Storage{External: ptr.To(false)}, false},
	} {
		if got := External(c.storage); got != c.want {
			t.Errorf("%s: External is %v", name, got)
		}
	}
}

func TestFileBackend(t *testing.T) {
	for name, c := range map[string]struct {
		config  string
		secrets []string
		want    bool
	}{
		"none is named":                       {"[DEFAULT]\ndebug = true\n", nil, true},
		"one of type file":                    {file, nil, true},
		"one of another type":                 {swift, nil, false},
		"several, one of them a file":         {"[DEFAULT]\nenabled_backends = a:file, b:rbd\n", nil, false},
		"the last one counts":                 {file + "enabled_backends = b:rbd\n", nil, false},
		"a Secret may name one":               {"", []string{"s"}, false},
		"one of type file, whatever a Secret": {file, []string{"s"}, true},
		"what cannot be read names none":      {"x", nil, true},
	} {
		if got := FileBackend(glancev1.APIService{CustomServiceConfig: c.config, CustomServiceConfigSecrets: c.secrets}); got != c.want {
			t.Errorf("%s: FileBackend is %v", name, got)
		}
	}
}

func TestNamesAreThoseOfTheSeeds(t *testing.T) {
	for want, c := range map[string]struct {
		api string
		t   glancev1.APIType
	}{
		"glance-default-single":       {"default", glancev1.APISingle},
		"glance-default-external-api": {"default", glancev1.APIExternal},
		"glance-default-internal-api": {"default", glancev1.APIInternal},
		"glance-azone-edge-api":       {"azone", glancev1.APIEdge},
	} {
		if got := SetName(APIName("glance", c.api, c.t), c.t); got != want {
			t.Errorf("StatefulSet of %s %s is %s; want %s", c.api, c.t, got, want)
		}
	}
}

func TestKeystoneEndpoint(t *testing.T) {
	edge := glancev1.GlanceAPITemplate{Type: glancev1.LayoutEdge}
	type apis map[string]glancev1.GlanceAPITemplate
	for name, c := range map[string]struct {
		named string
		apis  apis
		want  string
	}{
		"the one that is named":              {"b", apis{"a": {}, "b": {}}, "b"},
		"the only one":                       {"", apis{"a": {}}, "a"},
		"the only one that users reach":      {"", apis{"a": {}, "e": edge}, "a"},
		"none of several":                    {"", apis{"a": {}, "b": {}}, ""},
		"none, as an edge API has no public": {"", apis{"e": edge}, ""},
	} {
		if got := KeystoneEndpoint(glancev1.GlanceSpec{KeystoneEndpoint: c.named, GlanceAPIs: c.apis}); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
