package nova

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeservice"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/podified"
)

// authorityKey is where certificates have that of their authority (cert-manager).
const authorityKey = "ca.crt"

// askAPI is the phase that says how the API is asked for the services of computes.
func (s *scope) askAPI(ctx context.Context) error {
	key := client.ObjectKeyFromObject(s.nova)
	if !s.wantsAPI() {
		s.Services.Forget(key)
		return nil
	}
	spec := s.nova.Spec
	s.Services.Configure(key, computeservice.Access{
		AuthURL: spec.KeystoneAuthURL, Region: spec.Keystone.Region, User: spec.ServiceUser,
		UserDomain: spec.Keystone.UserDomainName, ProjectDomain: spec.Keystone.ProjectDomainName,
		Password: strings.TrimRight(string(s.passwords[novav1.ServicePasswordKey]), "\r\n"), CA: s.authorities(ctx),
	})
	return nil
}

// authorities are the certificates of those that are trusted, in the bundle, in the Secret
// of the passwords and in that of the API's certificate.
func (s *scope) authorities(ctx context.Context) string {
	names := []string{s.nova.Spec.Secret}
	if tls := s.nova.Spec.APIServiceTemplate.TLS; tls != nil {
		names = append(names, tls.SecretName)
	}
	var all strings.Builder
	if name := s.nova.Spec.CABundleSecretName; name != "" {
		if data, err := s.Inputs.Secret(ctx, s.nova.Namespace, name); err == nil { // as below
			fmt.Fprintf(&all, "%s\n", data[podified.AuthoritiesFile])
		}
	}
	for _, name := range names {
		if data, err := s.Inputs.Secret(ctx, s.nova.Namespace, name); err == nil { // else the API waits for it
			fmt.Fprintf(&all, "%s\n", data[authorityKey])
		}
	}
	return strings.TrimSpace(all.String())
}

// computeServices is the phase that says whether the API can be asked for the
// services of computes, and maps the hosts that wait for it. Nothing else waits for
// that.
func (s *scope) computeServices(ctx context.Context) error {
	if !s.configured() {
		return nil
	}
	mark := &s.nova.Status.Conditions
	trouble, known := s.Services.Trouble(client.ObjectKeyFromObject(s.nova))
	observed, err := s.hasComputes(ctx)
	if err != nil {
		return err
	}
	switch {
	case !known && observed && s.before != nil && s.before.Status == corev1.ConditionFalse:
		mark.Set(s.before) // a manager that has just been started does not know better
	case trouble != nil:
		mark.MarkFalse(novav1.NovaComputeServicesReadyCondition, trouble.Reason, condition.SeverityWarning,
			"%s. It is tried again automatically; until then computes that were up are shown as they were", trouble.Message)
	default:
		mark.MarkTrue(novav1.NovaComputeServicesReadyCondition, "Compute services are read from the Nova API")
		err = s.mapHosts(ctx)
	}
	return err
}

// mapHosts runs the Job for hosts that wait for it. The Nova is Ready meanwhile.
func (s *scope) mapHosts(ctx context.Context) error {
	err := s.mapAgain(ctx)
	if round := s.Services.Discovery(client.ObjectKeyFromObject(s.nova)); err == nil && round != nil {
		err = s.discover(ctx, round)
	}
	var halt *phase.Halt
	mark := &s.nova.Status.Conditions
	switch {
	case !errors.As(err, &halt):
		return err
	case halt.Severity == condition.SeverityInfo:
		mark.MarkTrue(novav1.NovaComputeServicesReadyCondition, "%s", halt.Message)
	default:
		mark.MarkFalse(halt.Type, halt.Reason, halt.Severity, "%s", halt.Message)
	}
	return nil
}

// hasComputes reports whether there is a compute whose service is asked for.
func (s *scope) hasComputes(ctx context.Context) (bool, error) {
	for _, cell := range s.cells {
		onHosts, inPods := &novav1.NovaExternalComputeList{}, &novav1.NovaComputeList{}
		of := []client.ListOption{client.InNamespace(cell.Namespace), client.MatchingFields{"spec.cellName": cell.Name}}
		err := errors.Join(s.List(ctx, onHosts, append(of, client.Limit(1))...), s.List(ctx, inPods, of...))
		if err != nil || len(onHosts.Items) > 0 || slices.ContainsFunc(inPods.Items, func(c novav1.NovaCompute) bool { return len(c.Status.Hosts) > 0 }) {
			return true, err
		}
	}
	return false, nil
}

func discoveryJobName(nova string) string { return nova + "-discover-hosts" }

func allHostsJobName(nova string) string { return nova + "-discover-all-hosts" }

// mapAgain maps all hosts that are not mapped, once for each token by which a person asks for all
// Jobs again: of hosts that were mapped nova is not asked again whether they are.
func (s *scope) mapAgain(ctx context.Context) error {
	if s.nova.Annotations[common.RerunAnnotation] == "" {
		return nil
	}
	job, err := nova.DiscoveryJob(allHostsJobName(s.nova.Name), nil, time.Time{}, true, s.config)
	return s.run(ctx, novav1.NovaComputeServicesReadyCondition, job, err)
}

// discover maps the hosts of a round. That it was done is not remembered: nova knows,
// and is asked again.
func (s *scope) discover(ctx context.Context, round *computeservice.Round) error {
	name := discoveryJobName(s.nova.Name)
	job, err := nova.DiscoveryJob(name, round.Hosts, round.Found, round.ByService, s.config)
	if err := s.run(ctx, novav1.NovaComputeServicesReadyCondition, job, err); err != nil {
		return err
	}
	delete(s.nova.Status.Jobs, name)
	s.Services.Discovered(client.ObjectKeyFromObject(s.nova), round)
	return nil
}
