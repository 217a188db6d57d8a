// Package audit compares what a ServiceAccount asked of the API server, as the
// audit log tells it, with what it was granted.
package audit

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Request is what the log has of one request.
type Request struct {
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	Object     *struct {
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Response *struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Annotations map[string]string `json:"annotations"`
}

// Read returns the requests of a user, each of the same sort once. Requests that
// are not about resources are left out: those are open to everybody.
func Read(log io.Reader, user string) ([]Request, error) {
	seen := map[string]Request{}
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r Request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("reading an entry of the audit log: %w", err)
		}
		if r.User.Username == user && r.Object != nil {
			seen[fmt.Sprint(r.rights(), r.Refused(), r.broad(), r.Object.Namespace, "/", r.Object.Name)] = r
		}
	}
	return slices.Collect(maps.Values(seen)), lines.Err()
}

// Refused reports whether the user had no right to what it asked for.
func (r Request) Refused() bool { return r.Annotations["authorization.k8s.io/decision"] == "forbid" }

// created reports whether a patch made the object, which needs the right to create.
func (r Request) created() bool {
	return r.Verb == "patch" && r.Response != nil && r.Response.Code == 201
}

// broad reports whether more than one Secret was asked for, without a label that
// says which.
func (r Request) broad() bool {
	if r.Object.Group != "" || r.Object.Resource != "secrets" || r.Verb != "list" && r.Verb != "watch" {
		return false
	}
	address, err := url.Parse(r.RequestURI)
	if err != nil || r.Object.Namespace == "" {
		return true
	}
	return !strings.HasPrefix(address.Query().Get("fieldSelector"), "metadata.name=") && address.Query().Get("labelSelector") == ""
}

// right that the request needs, as "verb group/resource[/subresource]".
func (r Request) right() string {
	resource := r.Object.Resource
	if r.Object.Subresource != "" {
		resource += "/" + r.Object.Subresource
	}
	return r.Verb + " " + r.Object.Group + "/" + resource
}

// streams reports whether a watch begins with what a list would have returned. An
// older API server cannot do so, and is asked for a list and a watch.
func (r Request) streams() bool {
	return r.Verb == "watch" && strings.Contains(r.RequestURI, "sendInitialEvents=true")
}

// rights that the request has used.
func (r Request) rights() []string {
	all := []string{r.right()}
	if r.created() {
		all = append(all, strings.Replace(r.right(), r.Verb, "create", 1))
	}
	if r.streams() {
		all = append(all, strings.Replace(r.right(), r.Verb, "list", 1))
	}
	return all
}

// Grant are rules that hold in a namespace, or for an empty one in all.
type Grant struct {
	Namespace string
	Rules     []rbacv1.PolicyRule
}

// rights of the grant, those in one namespace followed by its name.
func (g Grant) rights() []string {
	var all []string
	for _, rule := range g.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all = append(all, strings.TrimSpace(verb+" "+group+"/"+resource+" "+g.Namespace))
				}
			}
		}
	}
	return all
}

// Findings of a comparison, sorted; all empty when all is well.
type Findings struct {
	// Refused are requests for which there was no right.
	Refused []string
	// Broad are requests for more than one Secret.
	Broad []string
	// Unused are rights that no request has used, and that are not excused.
	Unused []string
	// Stale are excuses for rights of which none is granted.
	Stale []string
}

// Compare returns what is wrong with requests and grants. Excuses are rights that
// need not be used in these requests, as path.Match takes them: "update
// */*/finalizers". Provoked tells which requests were made in order to be
// refused.
func Compare(requests []Request, grants []Grant, excuses []string, provoked func(Request) bool) Findings {
	found, used := Findings{}, map[string]bool{}
	for _, r := range requests {
		if r.broad() {
			found.Broad = append(found.Broad, r.RequestURI)
		}
		if r.Refused() {
			if !provoked(r) {
				found.Refused = append(found.Refused, fmt.Sprintf("%s %s/%s", r.right(), r.Object.Namespace, r.Object.Name))
			}
			continue
		}
		for _, right := range r.rights() {
			used[right] = true
			used[right+" "+r.Object.Namespace] = true
		}
	}
	granted := map[string]bool{}
	for _, g := range grants {
		for _, right := range g.rights() {
			granted[right] = true
			if !used[right] && !excused(right, excuses) {
				found.Unused = append(found.Unused, right)
			}
		}
	}
	for _, pattern := range excuses {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(granted)), func(right string) bool { return matches(pattern, right) }) {
			found.Stale = append(found.Stale, pattern)
		}
	}
	for _, list := range []*[]string{&found.Refused, &found.Broad, &found.Unused, &found.Stale} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return found
}

func excused(right string, excuses []string) bool {
	for _, pattern := range excuses {
		if matches(pattern, right) {
			return true
		}
	}
	return false
}

func matches(pattern, right string) bool {
	ok, err := path.Match(pattern, right)
	return ok && err == nil
}
