package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	"github.com/edpm-operators/edpm-operators/test/lab/internal/binaries"
	"github.com/edpm-operators/edpm-operators/test/lab/internal/proc"
)

// olmNamespace is that of OLM, whose catalogs all namespaces can use.
const olmNamespace = "olm"

// olm defines the kinds of OLM and starts its two operators.
func (l *Lab) olm(ctx context.Context, _ Options) error {
	for _, args := range [][]string{
		{"apply", "--server-side", "-f", filepath.Join(l.OLM, binaries.OLMDefinitions)},
		{"wait", "--for=condition=Established", "--timeout=60s", "-f", filepath.Join(l.OLM, binaries.OLMDefinitions)},
	} {
		if _, err := command(ctx, filepath.Join(l.Bin, "kubectl"), append(args, "--kubeconfig", l.Kubeconfig())...); err != nil {
			return err
		}
	}
	if err := l.makeNamespace(ctx, olmNamespace); err != nil {
		return err
	}
	for _, c := range l.olmComponents() {
		// They tell of their health at a port that is the same for both.
		if err := l.run(ctx, c, func(context.Context) error { return nil }); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) makeNamespace(ctx context.Context, name string) error {
	api, err := l.api()
	if err != nil {
		return err
	}
	namespace := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata{Name: name}}
	if err := api.do(ctx, http.MethodPost, "/api/v1/namespaces", namespace, nil); !errors.Is(err, errExists) {
		return err
	}
	return nil
}

func (l *Lab) olmComponents() []proc.Component {
	var components []proc.Component
	for _, name := range []string{"catalog", "olm"} {
		c := l.olmComponent(name, 0, "--namespace="+olmNamespace, "--interval=1m")
		c.Env = []string{"KUBECONFIG=" + l.Kubeconfig()}
		components = append(components, c)
	}
	// No files are written, as klog logs to stderr: these tell down whose they are.
	components[0].Argv = append(components[0].Argv, "--kubeconfig="+l.Kubeconfig())
	components[1].Argv = append(components[1].Argv, "--log_dir="+l.path("logs"))
	return components
}

// olmComponent describes a process whose executable is in OLM.
func (l *Lab) olmComponent(name string, port int, args ...string) proc.Component {
	return proc.Component{Name: name, Argv: append([]string{filepath.Join(l.OLM, name)}, args...), Port: port}
}

// Catalog serves the file-based catalog in dir, in place of the one that is served,
// and returns the address for a CatalogSource. The catalog is read once: to serve
// what has changed, call it again.
func (l *Lab) Catalog(ctx context.Context, dir string) (string, error) {
	if !l.procs.Known("olm") {
		return "", fmt.Errorf("serving a catalog: %w with OLM: up --olm does that", errNotRunning)
	}
	unlock, err := l.lock()
	if err != nil {
		return "", err
	}
	defer unlock()
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	if err := l.procs.Stop("opm", 0); err != nil {
		return "", err
	}
	if err := os.RemoveAll(l.path("catalog")); err != nil {
		return "", err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(l.catalogPort()))
	return address, l.run(ctx, l.opm(dir), func(ctx context.Context) error { return answers(ctx, address) })
}

func (l *Lab) opm(dir string) proc.Component {
	return l.olmComponent("opm", l.catalogPort(), "serve", dir, "--port="+strconv.Itoa(l.catalogPort()),
		"--cache-dir="+l.path("catalog"), "--cache-enforce-integrity=false", "--pprof-addr=127.0.0.1:0")
}

func answers(ctx context.Context, address string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}
