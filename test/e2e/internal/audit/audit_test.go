package audit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

const manager = "system:serviceaccount:system:manager"

// entry is a line of the log as kube-apiserver writes it.
func entry(user, verb, uri, object string, code int, decision string) string {
	return fmt.Sprintf(`{"kind":"Event","level":"Metadata","stage":"ResponseComplete","requestURI":%q,"verb":%q,"user":{"username":%q},`+
		`"objectRef":%s,"responseStatus":{"metadata":{},"code":%d},"annotations":{"authorization.k8s.io/decision":%q,"authorization.k8s.io/reason":""}}`,
		uri, verb, user, object, code, decision)
}

func secret(verb, namespace, query string) string {
	uri, object := "/api/v1/secrets", `{"resource":"secrets","apiVersion":"v1"}`
	if namespace != "" {
		uri = "/api/v1/namespaces/" + namespace + "/secrets"
		object = fmt.Sprintf(`{"resource":"secrets","namespace":%q,"apiVersion":"v1"}`, namespace)
	}
	return entry(manager, verb, uri+"?"+query, object, 200, "allow")
}

func job(verb string, code int, decision string) string {
	return entry(manager, verb, "/apis/batch/v1/namespaces/ns/jobs/j", `{"resource":"jobs","namespace":"ns","name":"j","apiGroup":"batch","apiVersion":"v1"}`, code, decision)
}

func lease(namespace string) string {
	return entry(manager, "update", "/x", fmt.Sprintf(`{"resource":"leases","namespace":%q,"name":"l","apiGroup":"coordination.k8s.io"}`, namespace), 200, "allow")
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

func TestCompare(t *testing.T) {
	jobs := []Grant{{Rules: []rbacv1.PolicyRule{rule("batch", "jobs", "create", "get")}}}
	for name, c := range map[string]struct {
		log     []string
		grants  []Grant
		excuses []string
		want    Findings
	}{
		"what was used was granted":                   {log: []string{job("create", 201, "allow"), job("get", 200, "allow")}, grants: jobs},
		"a right was used though the object was gone": {log: []string{job("create", 409, "allow"), job("get", 404, "allow")}, grants: jobs},
		"a right was not used":                        {log: []string{job("create", 201, "allow")}, grants: jobs, want: Findings{Unused: []string{"get batch/jobs"}}},
		"what others do uses no right":                {log: []string{job("create", 201, "allow"), strings.ReplaceAll(job("get", 200, "allow"), manager, "other")}, grants: jobs, want: Findings{Unused: []string{"get batch/jobs"}}},
		"a right was not used, for a reason":          {log: []string{job("create", 201, "allow")}, grants: jobs, excuses: []string{"get batch/jobs"}},
		"a reason is there for a right that is not":   {excuses: []string{"get batch/jobs"}, want: Findings{Stale: []string{"get batch/jobs"}}},
		"rights were not used, all for one reason":    {grants: jobs, excuses: []string{"* batch/*"}},
		"a reason is for a resource, not for what is below it": {
			grants: []Grant{{Rules: []rbacv1.PolicyRule{rule("g", "r/status", "get")}}}, excuses: []string{"get g/*"},
			want: Findings{Unused: []string{"get g/r/status"}, Stale: []string{"get g/*"}},
		},
		"a watch that begins with all there is spares a list": {
			log:    []string{entry(manager, "watch", "/x?sendInitialEvents=true&watch=true", `{"resource":"jobs","apiGroup":"batch"}`, 200, "allow")},
			grants: []Grant{{Rules: []rbacv1.PolicyRule{rule("batch", "jobs", "list", "watch")}}},
		},
		"another watch does not": {
			log:    []string{entry(manager, "watch", "/x?watch=true", `{"resource":"jobs","apiGroup":"batch"}`, 200, "allow")},
			grants: []Grant{{Rules: []rbacv1.PolicyRule{rule("batch", "jobs", "list", "watch")}}}, want: Findings{Unused: []string{"list batch/jobs"}},
		},
		"a request was refused":                       {log: []string{job("delete", 403, "forbid")}, want: Findings{Refused: []string{"delete batch/jobs ns/j"}}},
		"it was refused, as the story wanted":         {log: []string{job("update", 403, "forbid")}},
		"admission refused what there was a right to": {log: []string{job("create", 403, "allow"), job("get", 200, "allow")}, grants: jobs},
		"a refused request uses no right":             {log: []string{job("create", 201, "allow"), job("update", 403, "forbid")}, grants: []Grant{{Rules: []rbacv1.PolicyRule{rule("batch", "jobs", "create", "update")}}}, want: Findings{Unused: []string{"update batch/jobs"}}},
		"a patch that makes the object is a creation": {log: []string{job("patch", 201, "allow"), job("patch", 200, "allow")}, grants: []Grant{{Rules: []rbacv1.PolicyRule{rule("batch", "jobs", "create", "patch")}}}},
		"a patch that changes it is none":             {log: []string{job("patch", 200, "allow")}, grants: []Grant{{Rules: []rbacv1.PolicyRule{rule("batch", "jobs", "create", "patch")}}}, want: Findings{Unused: []string{"create batch/jobs"}}},
		"a right of a namespace was used there":       {log: []string{lease("system")}, grants: []Grant{{"system", []rbacv1.PolicyRule{rule("coordination.k8s.io", "leases", "update")}}}},
		"a right of a namespace was used elsewhere":   {log: []string{lease("ns")}, grants: []Grant{{"system", []rbacv1.PolicyRule{rule("coordination.k8s.io", "leases", "update")}}}, want: Findings{Unused: []string{"update coordination.k8s.io/leases system"}}},
		"a subresource is a resource of its own":      {log: []string{entry(manager, "patch", "/x", `{"resource":"nova","subresource":"status","apiGroup":"nova.openstack.org"}`, 200, "allow")}, grants: []Grant{{Rules: []rbacv1.PolicyRule{rule("nova.openstack.org", "nova/status", "patch")}}}},
		"Secrets are asked for by name, or by label":  {log: []string{secret("watch", "ns", "watch=true&fieldSelector=metadata.name%3Dkey"), secret("list", "ns", "labelSelector=a")}},
		"all Secrets of a namespace":                  {log: []string{secret("list", "ns", "limit=500")}, want: Findings{Broad: []string{"/api/v1/namespaces/ns/secrets?limit=500"}}},
		"a Secret of some name in all namespaces":     {log: []string{secret("watch", "", "fieldSelector=metadata.name%3Dkey")}, want: Findings{Broad: []string{"/api/v1/secrets?fieldSelector=metadata.name%3Dkey"}}},
		"Secrets by a label in all namespaces":        {log: []string{secret("list", "", "labelSelector=a")}, want: Findings{Broad: []string{"/api/v1/secrets?labelSelector=a"}}},
		"what is about no resource needs no right":    {log: []string{strings.Replace(entry(manager, "get", "/version", "null", 200, "allow"), `"objectRef":null,`, "", 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			requests, err := Read(strings.NewReader(strings.Join(c.log, "\n")), manager)
			if err != nil {
				t.Fatal(err)
			}
			provoked := func(r Request) bool { return r.Verb == "update" }
			if diff := cmp.Diff(c.want, Compare(requests, c.grants, c.excuses, provoked)); diff != "" {
				t.Errorf("the findings differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadRefusesWhatIsNoLog(t *testing.T) {
	if _, err := Read(strings.NewReader("{"), manager); err == nil {
		t.Error("half an entry is read")
	}
}
