package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// requestTimeout is how long the API server has for an answer, unless --request-timeout
// says otherwise.
const requestTimeout = 30 * time.Second

// advise has a command and those below it say what to do about errors that are not
// about what they were asked for.
func advise(cmd *cobra.Command) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error { return withAdvice(run(cmd, args)) }
	}
	for _, sub := range cmd.Commands() {
		advise(sub)
	}
}

// notInstalled says what to do about kinds that the cluster does not have.
const notInstalled = "the operators are not installed in this cluster, or in a version without this kind: " +
	"see which cluster it is (kubectl config current-context) and what it has (kubectl api-resources --categories=edpm)"

func withAdvice(err error) error {
	switch {
	case err == nil:
		return nil
	case isMissingKind(err):
		return fmt.Errorf("%w\n%s", err, notInstalled)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w\nthe credentials of the kubeconfig are not valid, or have expired: log in again, or name another --context", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w\nthe user of the kubeconfig may not do this: kubectl auth can-i --list shows what it may; ask the administrator of the cluster for the permission", err)
	case isSilent(err):
		return fmt.Errorf("%w\nthe API server does not answer: see whether the kubeconfig has the right one (kubectl cluster-info), or give it more time with --request-timeout", err)
	}
	return err
}

// isMissingKind reports whether the cluster does not have a kind.
func isMissingKind(err error) bool { return meta.IsNoMatchError(err) }

// isSilent reports whether the API server could not be reached, or did not answer in
// time.
func isSilent(err error) bool {
	var network *net.OpError
	var request *url.Error
	return errors.As(err, &network) || errors.As(err, &request) || errors.Is(err, context.DeadlineExceeded)
}
