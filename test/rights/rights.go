// Package rights says where those rights of the manager are used that no story of
// test/e2e uses. The manager of each suite named here has the deployed rights and no
// others; what it asks of the API server is noted, and the suite fails if one of its
// rights was not asked for. So none is granted on the word of a comment.
package rights

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Suites of tests with a manager.
const (
	Controllers = "controllers"
	Podified    = "test/podified"
)

// Use is where a right is used.
type Use struct {
	// Suite whose manager makes a request with the right.
	Suite string
	// File and Story, where no manager of a suite shows the right: a story that makes
	// the request, or that shows what is refused without the right.
	File, Story string
}

var (
	inControllers = Use{Suite: Controllers}
	inPodified    = Use{Suite: Podified}
)

// Elsewhere are rights that no story of test/e2e uses for every change, as "verb
// group/resource[/subresource]" or a pattern (path.Match) of that.
var Elsewhere = map[string]Use{
	// Asked by the admission plugin OwnerReferencesPermissionEnforcement, which
	// OpenShift has.
	"update */*/finalizers": {File: "controllers/finalizers_test.go", Story: "lets a child name its owner, which the API server refuses without it"},
	// Read by the webhooks of nodes and roles that warn of a missing cell.
	"get nova.openstack.org/novacells": {File: "webhooks/cell_test.go", Story: "warns when the NovaCell does not exist, or is cell0"},
	// Asked by the webhook of runs.
	"update ansibleee.openstack.org/openstackansibleees/targets": {File: "webhooks/security_test.go", Story: "cannot claim that a host has converged"},

	"list k8s.cni.cncf.io/network-attachment-definitions":  inControllers,
	"watch k8s.cni.cncf.io/network-attachment-definitions": inControllers,

	"create dataplane.openstack.org/openstackdataplaneroles":   inControllers,
	"patch dataplane.openstack.org/openstackdataplaneroles":    inControllers,
	"delete dataplane.openstack.org/openstackdataplaneroles":   inControllers,
	"create dataplane.openstack.org/openstackdataplanenodes":   inControllers,
	"delete dataplane.openstack.org/openstackdataplanenodes":   inControllers,
	"patch dataplane.openstack.org/openstackdataplanes/status": inControllers,
	"delete nova.openstack.org/novacells":                      inControllers,
	"delete nova.openstack.org/novaexternalcomputes":           inControllers,
	"delete ansibleee.openstack.org/openstackansibleees":       inControllers,
	// The finalizer of a run that was deleted.
	"patch ansibleee.openstack.org/openstackansibleees":    inControllers,
	"get neutron.openstack.org/ovncontrollers":             inControllers,
	"create neutron.openstack.org/ovncontrollers":          inControllers,
	"patch neutron.openstack.org/ovncontrollers":           inControllers,
	"delete neutron.openstack.org/ovncontrollers":          inControllers,
	"patch neutron.openstack.org/ovncontrollers/status":    inControllers,
	"get neutron.openstack.org/ovnmetadataagents":          inControllers,
	"create neutron.openstack.org/ovnmetadataagents":       inControllers,
	"patch neutron.openstack.org/ovnmetadataagents":        inControllers,
	"delete neutron.openstack.org/ovnmetadataagents":       inControllers,
	"patch neutron.openstack.org/ovnmetadataagents/status": inControllers,
	// Asked past the cache where inputs are found that no one should have made.
	"get ansibleee.openstack.org/openstackansibleees": {File: "internal/edpm/security_test.go", Story: "TestInputsThatSomebodyElsePutThereAreNotUsed"},
	"get batch/jobs":    inControllers,
	"delete batch/jobs": inControllers,
	// Asked when an event comes again within some minutes.
	"patch events.k8s.io/events": {File: "controllers/events_test.go", Story: "increases a count with the permissions of the manager, and adds no other event"},
	"get /secrets":               inControllers,

	"get metal3.io/baremetalhosts":   inControllers,
	"list metal3.io/baremetalhosts":  inControllers,
	"watch metal3.io/baremetalhosts": inControllers,
	"patch metal3.io/baremetalhosts": inControllers,

	"create glance.openstack.org/glances":                    inPodified,
	"patch glance.openstack.org/glances":                     inPodified,
	"delete glance.openstack.org/glances":                    inPodified,
	"create nova.openstack.org/nova":                         inPodified,
	"patch nova.openstack.org/nova":                          inPodified,
	"delete nova.openstack.org/nova":                         inPodified,
	"patch core.openstack.org/openstackcontrolplanes/status": inPodified,
	"patch nova.openstack.org/novacells":                     inPodified,
	"patch nova.openstack.org/novacomputes":                  inPodified,
	"patch nova.openstack.org/novacomputes/status":           inPodified,
	"delete glance.openstack.org/glanceapis":                 inPodified,
	"delete /pods":                                           inPodified,
	"delete /services":                                       inPodified,
	"delete policy/poddisruptionbudgets":                     inPodified,
	"patch batch/jobs":                                       inPodified,
	"get batch/cronjobs":                                     inPodified,
	"create batch/cronjobs":                                  inPodified,
	"patch batch/cronjobs":                                   inPodified,
	"delete batch/cronjobs":                                  inPodified,
	"delete apps/statefulsets":                               inPodified,
	"get apps/statefulsets":                                  inPodified,
}

// Requests notes what a manager asks of the API server. The zero value is ready.
type Requests struct {
	mu   sync.Mutex
	used map[string]bool
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

var resolver = request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// Over notes what is granted of the requests that go through it.
func (q *Requests) Over(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if info, ierr := resolver.NewRequestInfo(r); err == nil && ierr == nil && info.IsResourceRequest && answer.StatusCode < http.StatusBadRequest {
			q.note(info, r, answer.StatusCode)
		}
		return answer, err
	})
}

func (q *Requests) note(info *request.RequestInfo, r *http.Request, code int) {
	resource := info.APIGroup + "/" + info.Resource
	if info.Subresource != "" {
		resource += "/" + info.Subresource
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.used == nil {
		q.used = map[string]bool{}
	}
	q.used[info.Verb+" "+resource] = true
	if info.Verb == "patch" && code == http.StatusCreated {
		q.used["create "+resource] = true
	}
	if info.Verb == "watch" && strings.Contains(r.URL.RawQuery, "sendInitialEvents=true") {
		q.used["list "+resource] = true
	}
}

// entry of a report that has rights.
const entry = "rights"

// Report adds what was asked for since the last time to the report of the story. The
// stories of a suite can run in several processes.
func (q *Requests) Report() {
	q.mu.Lock()
	defer q.mu.Unlock()
	ginkgo.AddReportEntry(entry, strings.Join(slices.Sorted(maps.Keys(q.used)), "\n"), ginkgo.ReportEntryVisibilityNever)
	q.used = nil
}

// Unused returns the rights of the suite that no story asked for. Of a suite that was
// not run whole it returns none.
func Unused(suite string, report ginkgo.Report) []string {
	if c := report.SuiteConfig; len(c.FocusStrings)+len(c.SkipStrings)+len(c.FocusFiles)+len(c.SkipFiles)+len(c.LabelFilter) > 0 {
		return nil
	}
	used := map[string]bool{}
	for _, spec := range report.SpecReports {
		for _, e := range spec.ReportEntries {
			if e.Name == entry {
				for right := range strings.SplitSeq(e.StringRepresentation(), "\n") {
					used[right] = true
				}
			}
		}
	}
	return without(used, suite)
}

// without are the rights of the suite that are not among the used ones.
func without(used map[string]bool, suite string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(Elsewhere)), func(right string) bool {
		return Elsewhere[right].Suite != suite || used[right]
	})
}
