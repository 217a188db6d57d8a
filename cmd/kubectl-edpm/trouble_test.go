package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// everyCommand is each one that asks a cluster, with the words that its error has as
// well.
var everyCommand = [][]string{
	{"status"}, {"status", "edpm-compute-0"}, {"status", "role/edpm-compute"}, {"status", "--watch", "--timeout", "2s"}, {"logs", "edpm-compute-0"}, {"logs", "edpm-compute-0", "--follow"},
	{"rerun", "edpm-compute-0"}, {"rerun", "role/edpm-compute", "--step", "run-os"}, {"must-gather", "--dest", "DIR"}, {"must-gather", "--all-namespaces", "--dest", "DIR"},
	{"drain", "edpm-compute-0"}, {"undrain", "edpm-compute-0"}, {"topology", "map"}, {"topology", "simulate", "-f", "-", "--for", "glance"},
}

// answers is an API server that only says how it is.
func answers(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server.URL
}

func status(w http.ResponseWriter, code int32, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(code))
	_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message})
}

// serves answers with JSON by the path, and is empty otherwise.
func serves(byPath map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text, found := byPath[r.URL.Path]
		if !found {
			status(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(text))
	}
}

const (
	coreVersions = `{"kind":"APIVersions","versions":["v1"]}`
	noGroups     = `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`
	coreKinds    = `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","namespaced":true,"kind":"Pod","verbs":["list"]}]}`
)

// Whatever the command, its error says what is wrong with the cluster and what to do.
func TestEveryCommandSaysWhatIsWrongWithTheCluster(t *testing.T) {
	silent := make(chan struct{})
	t.Cleanup(func() { close(silent) })
	for name, c := range map[string]struct {
		server string
		says   string
	}{
		"without the operators": {answers(t, serves(map[string]string{"/api": coreVersions, "/apis": noGroups, "/api/v1": coreKinds})), ""},
		"without rights": {answers(t, func(w http.ResponseWriter, _ *http.Request) {
			status(w, http.StatusForbidden, metav1.StatusReasonForbidden, "it is forbidden")
		}), "kubectl auth can-i --list"},
		"with credentials that have expired": {answers(t, func(w http.ResponseWriter, _ *http.Request) {
			status(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized")
		}), "log in again"},
		"that does not answer": {answers(t, func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-silent:
			case <-r.Context().Done():
			}
		}), "the API server does not answer"},
		"that is not there": {"http://127.0.0.1:1", "the API server does not answer"},
	} {
		for _, args := range everyCommand {
			t.Run(name+": "+strings.Join(args, " "), func(t *testing.T) {
				out, err := runAgainst(t, c.server, args...)
				switch {
				case err == nil:
					t.Errorf("it succeeds: %s", out)
				case c.says != "" && !strings.Contains(err.Error(), c.says):
					t.Errorf("the error is %v; want %q", err, c.says)
				case c.says == "" && !strings.Contains(err.Error(), "the operators are not installed"):
					t.Errorf("the error is %v; want that the operators are not installed", err)
				}
			})
		}
	}
}

func runAgainst(t *testing.T, server string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := newRoot(genericiooptions.IOStreams{In: strings.NewReader(spreadPods), Out: &out, ErrOut: &out})
	args = append([]string{}, args...)
	for i := range args {
		if args[i] == "DIR" {
			args[i] = filepath.Join(t.TempDir(), "gathered")
		}
	}
	root.SetArgs(append(args, "--kubeconfig", "/dev/null", "--server", server, "--namespace", "openstack", "--request-timeout", "300ms"))
	err := root.ExecuteContext(context.Background())
	return out.String(), err
}
