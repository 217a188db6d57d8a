// Command make runs targets of the Makefile, the first first, and shows their progress.
// What a target prints is shown if it fails.
//
//	go run ./test/progress/make 'make test' 2 test-stories test-pure test-python
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/edpm-operators/edpm-operators/test/progress"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) < 3 {
		return errors.New("usage: make TITLE AT-ONCE TARGET [TARGET...]")
	}
	runner := progress.New(args[0])
	var err error
	if runner.AtOnce, err = strconv.Atoi(args[1]); err != nil {
		return fmt.Errorf("reading how many run at once: %w", err)
	}
	var steps []progress.Step
	for _, target := range args[2:] {
		steps = append(steps, progress.Step{Name: target, Run: progress.Command("make", "--no-print-directory", target)})
	}
	return runner.Run(ctx, steps)
}
