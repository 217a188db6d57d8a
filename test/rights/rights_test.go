package rights

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryUseIsInASuiteOrAStory(t *testing.T) {
	for right, use := range Elsewhere {
		if use.Suite != "" {
			if _, err := os.Stat(filepath.Join("..", "..", use.Suite, "suite_test.go")); err != nil {
				t.Errorf("%s: %v", right, err)
			}
			continue
		}
		code, err := os.ReadFile(filepath.Join("..", "..", use.File))
		if err != nil || !strings.Contains(string(code), `"`+use.Story+`"`) && !strings.Contains(string(code), "\nfunc "+use.Story+"(") {
			t.Errorf("%s: %s has no story %q (%v)", right, use.File, use.Story, err)
		}
	}
}

func TestOnlyWhatWasGrantedIsUsed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/refused"):
			w.WriteHeader(http.StatusForbidden)
		case r.Method == http.MethodPatch:
			w.WriteHeader(http.StatusCreated)
		}
	}))
	defer server.Close()
	requests := &Requests{}
	client := &http.Client{Transport: requests.Over(http.DefaultTransport)}
	ask := func(method, path string) {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	ask(http.MethodDelete, "/api/v1/namespaces/a/pods/refused")
	ask(http.MethodGet, "/apis/k8s.cni.cncf.io/v1/network-attachment-definitions?watch=true&sendInitialEvents=true")
	ask(http.MethodPatch, "/apis/nova.openstack.org/v1beta1/namespaces/a/nova/n")
	ask(http.MethodPatch, "/apis/nova.openstack.org/v1beta1/namespaces/a/novacomputes/n/status")
	left := strings.Join(without(requests.used, Controllers), "\n") + "\n" + strings.Join(without(requests.used, Podified), "\n") + "\n"
	for right, unused := range map[string]bool{
		"delete /pods": true, "list k8s.cni.cncf.io/network-attachment-definitions": false, "watch k8s.cni.cncf.io/network-attachment-definitions": false,
		"create nova.openstack.org/nova": false, "patch nova.openstack.org/nova": false, "patch nova.openstack.org/novacomputes/status": false, "patch nova.openstack.org/novacomputes": true,
	} {
		if strings.Contains(left, right+"\n") != unused {
			t.Errorf("whether %q was not used: want %v; left are\n%s", right, unused, left)
		}
	}
}
