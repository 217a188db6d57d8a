// Command bench measures how fast edpm-operators brings many nodes to the state that
// is wanted of them, next to the floor: a bare client that makes the same writes.
//
//	go run ./test/bench                        # 250, 1000 and 4000 nodes in 20 roles; 500 and 5000 in one
//	BENCH_N=250 go run ./test/bench            # one size only, a few minutes
//	BENCH_N=500/1,5000/1 go run ./test/bench   # one role only, rolled out 10% at a time
//
// It needs no root. For each size it starts a control plane of its own with
// test/standalone, KWOK nodes included, and the real manager from cmd/manager; runs are
// real Jobs, scheduled by the real scheduler, which KWOK finishes with the
// recap that ansible-runner would leave (stage.yaml). It takes both down again,
// also when it is interrupted.
//
// The table goes to the standard output, progress to the standard error. What
// the figures mean is described in docs/performance.md.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/edpm-operators/edpm-operators/test/standalone"
)

//go:embed stage.yaml
var stage []byte

// kwokNodes is how many pretend nodes the Pods of runs are spread over.
const kwokNodes = 8

type options struct {
	sizes   []load
	workers int
	port    int
	timeout time.Duration
	profile string
	// withoutWebhooks is for comparison with versions that were measured so.
	withoutWebhooks bool
}

// spread is how many roles the nodes of a size without a number of roles are in.
const spread = 20

// load is what one measurement has to do.
type load struct {
	nodes, roles int
	// later reports that the nodes are Ready before they are annotated with a cell,
	// and that only what follows is measured.
	later bool
}

// single reports whether all nodes are in one role, with maxUnavailable 10% and a
// Topology that each refers to itself.
func (l load) single() bool { return l.roles == 1 }

// String names the load in logs and files.
func (l load) String() string {
	switch {
	case l.later:
		return fmt.Sprintf("%d-ready", l.nodes)
	case l.single():
		return fmt.Sprintf("%d-in-one-role", l.nodes)
	}
	return strconv.Itoa(l.nodes)
}

func main() {
	log.SetFlags(log.Ltime)
	ctrl.SetLogger(zap.New())
	opts, err := parse(os.Args[1:], os.Getenv("BENCH_N"))
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = run(opts)
	}
	if err != nil {
		log.Fatalf("bench: %v", err)
	}
}

func parse(args []string, sizes string) (options, error) {
	if sizes == "" {
		sizes = "200/4+,250,1000,4000,500/1,5000/1"
	}
	o := options{}
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.StringVar(&sizes, "n", sizes, "numbers of nodes, separated by commas, each with the number of their roles as in 500/1 unless that is 20; with + nodes that are Ready before they are annotated with a cell then; BENCH_N is the default")
	fs.IntVar(&o.workers, "workers", 24, "writers of the floor at a time; 24 is what the manager has for nodes and computes")
	fs.IntVar(&o.port, "port-base", 26443, "first of the ten ports of the lab")
	fs.DurationVar(&o.timeout, "timeout", 90*time.Minute, "longest time for everything")
	fs.StringVar(&o.profile, "profile", "", "existing directory for profiles of the manager; none when empty")
	fs.BoolVar(&o.withoutWebhooks, "without-webhooks", false, "leave the webhooks out, as before they were measured")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	for _, field := range strings.Split(sizes, ",") {
		l, err := parseLoad(field)
		if err != nil {
			return o, err
		}
		o.sizes = append(o.sizes, l)
	}
	return o, nil
}

func parseLoad(text string) (load, error) {
	size, later := strings.CutSuffix(strings.TrimSpace(text), "+")
	nodes, roles, given := strings.Cut(size, "/")
	l, err := load{roles: spread, later: later}, error(nil)
	if given {
		l.roles, err = strconv.Atoi(roles)
	}
	n, nerr := strconv.Atoi(nodes)
	if l.nodes = n; err != nil || nerr != nil || l.roles < 1 || n < l.roles {
		return l, fmt.Errorf("%q is not a number of nodes, at least one for each role", text)
	}
	return l, nil
}

func run(opts options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, opts.timeout)
	defer cancel()
	dir, err := os.MkdirTemp("", "edpm-bench-")
	if err != nil {
		return err
	}
	b := &bench{options: opts, dir: dir}
	if err := standalone.Build(ctx, dir, "./cmd/manager"); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "stage.yaml"), stage, 0o644); err != nil {
		return err
	}
	var results []result
	for i, l := range opts.sizes {
		r, err := b.measure(ctx, l, i == len(opts.sizes)-1)
		if err != nil {
			return fmt.Errorf("%s nodes: %w; logs are in %s", l, err, dir)
		}
		results = append(results, r)
		log.Printf("So far:\n%s", tables(results))
	}
	fmt.Print(tables(results))
	return os.RemoveAll(dir)
}
