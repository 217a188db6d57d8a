package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestCountRequests(t *testing.T) {
	const before = `# HELP apiserver_request_total Counter
apiserver_request_total{code="200",component="apiserver",group="nova.openstack.org",resource="novaexternalcomputes",subresource="status",verb="PATCH"} 7
apiserver_request_total{code="409",component="apiserver",group="nova.openstack.org",resource="novaexternalcomputes",subresource="status",verb="PATCH"} 1
apiserver_request_total{code="200",component="apiserver",group="",resource="secrets",subresource="",verb="GET"} 3
apiserver_request_total_created{group=""} 9
`
	const after = before + `apiserver_request_total{code="201",group="",resource="secrets",subresource="",verb="POST",odd="a \"}\" b"} 1.5e+01
`
	want := requests{{"", "secrets", "", "POST"}: 15}
	if diff := cmp.Diff(want, countRequests([]byte(after)).since(countRequests([]byte(before)))); diff != "" {
		t.Errorf("requests since (-want +got):\n%s", diff)
	}
	status := request{"nova.openstack.org", "novaexternalcomputes", "status", "PATCH"}
	if got := countRequests([]byte(before))[status]; got != 8 {
		t.Errorf("requests of every outcome count: got %d, want 8", got)
	}
}

func TestShare(t *testing.T) {
	k := kind{}
	k.objects = append(k.objects, make([]unstructured.Unstructured, 3)...)
	for _, total := range []int{0, 1, 3, 7, 100} {
		sum := 0
		for i := range k.objects {
			sum += k.share(total, i)
		}
		if sum != total {
			t.Errorf("shares of %d add up to %d", total, sum)
		}
	}
}

func TestParse(t *testing.T) {
	for sizes, want := range map[string][]int{"": {250, 1000, 4000}, "250": {250}, "30, 40": {30, 40}, "5": nil, "x": nil} {
		o, err := parse(nil, sizes)
		if (err == nil) != (want != nil) {
			t.Errorf("BENCH_N=%q: error %v", sizes, err)
		}
		if err == nil && !cmp.Equal(o.sizes, want) {
			t.Errorf("BENCH_N=%q: got %v, want %v", sizes, o.sizes, want)
		}
	}
}
