package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
)

// Namespaces of the tests. Nodes in others stop the suite: the hosts are there
// only once.
const (
	samplesNS = "e2e-samples"
	batchNS   = "e2e-batch"
	hostileNS = "e2e-hostile"
	inputsNS  = "e2e-inputs"
	machineNS = "e2e-machine"
	classesNS = "e2e-classes"
	glanceNS  = "e2e-glance"
	systemNS  = "edpm-operators-system"
)

var testNamespaces = []string{samplesNS, batchNS, hostileNS, inputsNS, machineNS, classesNS, glanceNS, unboundNS}

// parallel runs functions at the same time and returns all their errors.
func parallel(funcs ...func() error) error {
	var wait sync.WaitGroup
	problems := make([]error, len(funcs))
	for i, f := range funcs {
		wait.Go(func() { problems[i] = f() })
	}
	wait.Wait()
	return errors.Join(problems...)
}

// onEach runs a function for each host at the same time.
func onEach(hosts []lab.Host, f func(lab.Host) error) error {
	var funcs []func() error
	for _, h := range hosts {
		funcs = append(funcs, func() error { return f(h) })
	}
	return parallel(funcs...)
}

// resetHosts takes off the hosts what earlier runs put on them.
func resetHosts(ctx context.Context) error {
	return onEach(allHosts(), func(h lab.Host) error {
		_, err := h.Console(ctx, resetScript)
		return err
	})
}

const resetScript = `set -e
systemctl start ssh
` + giveBackScript + `
rm -f /etc/e2e-broken /etc/sudoers.d/zz-e2e
units=$(cd /etc/systemd/system && ls -d edpm_*.service 2>/dev/null || true)
[ -z "$units" ] || systemctl disable --now $units
rm -rf /etc/systemd/system/edpm_*.service /var/lib/openstack /var/log/edpm /var/log/containers
systemctl daemon-reload
podman --runtime runc rm --all --force --time 0 >/dev/null
`

// clearCluster removes the manager and the namespaces of an earlier run.
func clearCluster(ctx context.Context) error {
	if err := refuseForeignNodes(ctx); err != nil {
		return err
	}
	for _, obj := range []client.Object{
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "edpm-operators-mutating-webhook-configuration"}},
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "edpm-operators-validating-webhook-configuration"}},
	} {
		if err := client.IgnoreNotFound(k8s.Delete(ctx, obj)); err != nil {
			return err
		}
	}
	for _, ns := range append([]string{systemNS}, testNamespaces...) {
		if err := dropNamespace(ctx, ns); err != nil {
			return err
		}
	}
	return nil
}

func refuseForeignNodes(ctx context.Context) error {
	nodes := &dataplanev1.OpenStackDataPlaneNodeList{}
	if err := k8s.List(ctx, nodes); err != nil {
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil // no resource definitions yet
		}
		return err
	}
	for _, n := range nodes.Items {
		if !strings.HasPrefix(n.Namespace, "e2e-") {
			return fmt.Errorf("the lab is in use: there are nodes in namespace %s, on the hosts that the tests need; take it down first", n.Namespace)
		}
	}
	return nil
}

// dropNamespace deletes a namespace and waits until it is gone. The manager is
// gone already, so finalizers are dropped for it.
func dropNamespace(ctx context.Context, name string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := k8s.Delete(ctx, ns); err != nil {
		return client.IgnoreNotFound(err)
	}
	return wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		if err := dropFinalizers(ctx, name); err != nil {
			return false, err
		}
		return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(ns), ns)), nil
	})
}

func dropFinalizers(ctx context.Context, namespace string) error {
	for _, list := range []client.ObjectList{
		&dataplanev1.OpenStackDataPlaneNodeList{}, &novav1.NovaExternalComputeList{}, &ansibleeev1.OpenStackAnsibleEEList{},
		&glancev1.GlanceAPIList{}, &topologyv1.TopologyList{},
	} {
		if err := k8s.List(ctx, list, client.InNamespace(namespace)); err != nil {
			if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
				continue
			}
			return err
		}
		items, _ := meta.ExtractList(list)
		for _, item := range items {
			obj := item.(client.Object)
			if len(obj.GetFinalizers()) == 0 {
				continue
			}
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
			if err := client.IgnoreNotFound(k8s.Patch(ctx, obj, patch)); err != nil {
				return err
			}
		}
	}
	return nil
}

// makeNamespaces creates the namespaces of the tests. Runs must satisfy the
// strictest level of pod security.
func makeNamespaces(ctx context.Context) error {
	for _, name := range testNamespaces {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			"pod-security.kubernetes.io/enforce": "restricted",
			"pod-security.kubernetes.io/warn":    "restricted",
		}}}
		if err := k8s.Create(ctx, ns); err != nil {
			return err
		}
	}
	return nil
}
