// Command bench measures how fast the suite brings many nodes to the state that
// is wanted of them, beside the floor: a bare client that makes the same writes.
//
//	go run ./test/bench                 # 250, 1000 and 4000 nodes in 20 roles
//	BENCH_N=250 go run ./test/bench     # one size only, a few minutes
//
// It needs no root. For each size it starts a control plane of its own with
// test/standalone, KWOK nodes included, and the real manager from cmd/manager; runs are
// real Jobs, scheduled by the real scheduler, which KWOK finishes with the
// recap that ansible-runner would leave (stage.yaml). It takes both down again,
// also when it is interrupted.
//
// The table goes to the standard output, progress to the standard error. What
// the figures mean is told in docs/performance.md.
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
	sizes   []int
	roles   int
	workers int
	port    int
	timeout time.Duration
	profile string
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
		sizes = "250,1000,4000"
	}
	o := options{}
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.StringVar(&sizes, "n", sizes, "numbers of nodes, separated by commas; BENCH_N is the default")
	fs.IntVar(&o.roles, "roles", 20, "roles that the nodes are spread over")
	fs.IntVar(&o.workers, "workers", 24, "writers of the floor at a time; 24 is what the manager has for nodes and computes")
	fs.IntVar(&o.port, "port-base", 26443, "first of the ten ports of the lab")
	fs.DurationVar(&o.timeout, "timeout", 90*time.Minute, "longest time for everything")
	fs.StringVar(&o.profile, "profile", "", "existing directory for profiles of the manager; none when empty")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	for _, field := range strings.Split(sizes, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || n < o.roles {
			return o, fmt.Errorf("%q is not a number of nodes of at least %d", field, o.roles)
		}
		o.sizes = append(o.sizes, n)
	}
	return o, nil
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
	if err := standalone.Build(ctx, dir); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "stage.yaml"), stage, 0o644); err != nil {
		return err
	}
	var results []result
	for i, n := range opts.sizes {
		r, err := b.measure(ctx, n, i == len(opts.sizes)-1)
		if err != nil {
			return fmt.Errorf("%d nodes: %w; logs are in %s", n, err, dir)
		}
		results = append(results, r)
		log.Printf("So far:\n%s", table(results))
	}
	fmt.Print(table(results))
	return os.RemoveAll(dir)
}
