package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
)

// withoutCluster begins the lines of commands that ask no cluster.
var withoutCluster = []string{"explain", "import -f"}

// variants are lines with flags that no help has an example of.
var variants = [][]string{
	{"status", "edpm-compute-0"}, {"status", "--watch", "--timeout", "10s"}, {"rerun", "role/edpm-compute", "--step", "run-os"}, {"logs", "edpm-compute-0", "--all"},
	{"must-gather", "--dest", "gathered"}, {"undrain", "edpm-compute-0", "--timeout", "2s"}, {"topology", "map", "-o", "json"}, {"topology", "simulate", "-f", "-", "--for", "glance"},
}

// word of a command line, in quotes or not.
var word = regexp.MustCompile(`'[^']*'|\S+`)

// everyLine returns lines of every command that asks a cluster: the examples of its help, which
// it must have, and the variants.
func everyLine(t *testing.T) [][]string {
	t.Helper()
	lines := slices.Clone(variants)
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		examples := inScript.FindAllStringSubmatch(cmd.Example, -1)
		if cmd.Runnable() && len(examples) == 0 {
			t.Errorf("the help of %q has no example", cmd.CommandPath())
		}
		for _, m := range examples {
			line, _, _ := strings.Cut(strings.TrimPrefix(m[1], "kubectl edpm "), " > ")
			if slices.ContainsFunc(withoutCluster, func(words string) bool { return strings.HasPrefix(line, words) }) {
				continue
			}
			var words []string
			for _, w := range word.FindAllString(line, -1) {
				words = append(words, strings.Trim(w, "'"))
			}
			lines = append(lines, words)
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newRoot(genericiooptions.NewTestIOStreamsDiscard()))
	return lines
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

// notThere matches the message that the operators are not installed.
var notThere = regexp.MustCompile(`the operators are not installed|openstack-operator is not installed`)

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
		for _, args := range everyLine(t) {
			t.Run(name+": "+strings.Join(args, " "), func(t *testing.T) {
				out, err := runOn(t, args, "--kubeconfig", "/dev/null", "--server", c.server, "--namespace", "openstack", "--request-timeout", "300ms")
				switch {
				case err == nil:
					t.Errorf("it succeeds: %s", out)
				case c.says != "" && !strings.Contains(err.Error(), c.says):
					t.Errorf("the error is %v; want %q", err, c.says)
				case c.says == "" && !notThere.MatchString(err.Error()):
					t.Errorf("the error is %v; want that the operators are not installed", err)
				}
			})
		}
	}
}

// What a real API server answers where there is nothing, in a namespace of another name than the
// one that people meant, and where not all is allowed or known.
func TestEveryCommandSaysWhatARealClusterLacks(t *testing.T) {
	env := shared.Env(t)
	for name, c := range map[string]struct {
		account []string
		server  string
		says    string
	}{
		"without objects": {nil, env.Config.Host, `namespace empty|no pod of the manager|No node has the label|"domains": null|<svg `},
		"without rights":  {[]string{"system:serviceaccount:empty:nobody"}, env.Config.Host, `kubectl auth can-i --list|^Note: .* forbidden`},
		"of a release without some of the kinds": {
			nil, answers(t, without(env.Config, "nova", "glance", "edpm", "topology")),
			`or in a version without this kind|namespace empty|no pod of the manager|No node has the label|"domains": null|<svg `,
		},
	} {
		kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
		if err := env.WriteKubeconfig(kubeconfig, c.account...); err != nil {
			t.Fatal(err)
		}
		for _, args := range everyLine(t) {
			t.Run(name+": "+strings.Join(args, " "), func(t *testing.T) {
				out, err := runOn(t, args, "--kubeconfig", kubeconfig, "--server", c.server, "--namespace", "empty")
				if !regexp.MustCompile(c.says).MatchString(out) || err != nil && strings.Contains(err.Error(), "[]") {
					t.Errorf("it prints %q, and the error is %v; want %s in it", out, err, c.says)
				}
			})
		}
	}
}

// without is the API server without the groups of these names.
func without(config *rest.Config, groups ...string) http.HandlerFunc {
	target, transport := must(url.Parse(config.Host)), must(rest.TransportFor(config))
	hidden := func(group string) bool {
		return slices.ContainsFunc(groups, func(g string) bool { return group == g+".openstack.org" })
	}
	proxy := &httputil.ReverseProxy{
		Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Set("Accept", "application/json")
			r.Out.Header.Del("Accept-Encoding")
		},
		ModifyResponse: func(r *http.Response) error {
			if r.Request.URL.Path != "/apis" {
				return nil
			}
			list := &metav1.APIGroupList{}
			if err := json.NewDecoder(r.Body).Decode(list); err != nil {
				return err
			}
			list.Groups = slices.DeleteFunc(list.Groups, func(g metav1.APIGroup) bool { return hidden(g.Name) })
			text := must(json.Marshal(list))
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
			r.Header.Set("Content-Length", strconv.Itoa(len(text)))
			return nil
		},
	}
	return func(w http.ResponseWriter, r *http.Request) {
		if parts := strings.Split(r.URL.Path, "/"); len(parts) > 2 && hidden(parts[2]) {
			status(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
			return
		}
		proxy.ServeHTTP(w, r)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// runOn runs the plugin in a directory with the file of the examples.
func runOn(t *testing.T, args []string, cluster ...string) (string, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("topo.yaml", []byte(spreadPods), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	root := newRoot(genericiooptions.IOStreams{In: strings.NewReader(spreadPods), Out: &out, ErrOut: &out})
	root.SetArgs(slices.Concat(args, cluster))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err := root.ExecuteContext(ctx)
	if ctx.Err() != nil {
		t.Errorf("it has not ended: %v", err)
	}
	return out.String(), err
}
