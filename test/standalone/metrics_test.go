package standalone

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseRequests(t *testing.T) {
	const before = `# HELP apiserver_request_total Counter
apiserver_request_total{code="200",component="apiserver",group="nova.openstack.org",resource="novaexternalcomputes",subresource="status",verb="PATCH"} 7
apiserver_request_total{code="409",component="apiserver",group="nova.openstack.org",resource="novaexternalcomputes",subresource="status",verb="PATCH"} 1
apiserver_request_total{code="200",component="apiserver",group="",resource="secrets",subresource="",verb="GET"} 3
apiserver_request_total{code="200",dry_run="All",group="",resource="secrets",subresource="",verb="GET"} 5
apiserver_request_total_created{group=""} 9
`
	const after = before + `apiserver_request_total{code="201",group="",resource="secrets",subresource="",verb="POST",odd="a \"}\" b"} 1.5e+01
`
	want := Requests{{"", "secrets", "", "POST"}: 15}
	if diff := cmp.Diff(want, parseRequests([]byte(after)).Since(parseRequests([]byte(before)))); diff != "" {
		t.Errorf("requests since (-want +got):\n%s", diff)
	}
	status := Request{"nova.openstack.org", "novaexternalcomputes", "status", "PATCH"}
	if got := parseRequests([]byte(before))[status]; got != 8 {
		t.Errorf("requests of every outcome count: got %d, want 8", got)
	}
}
