package openstackansibleee

import (
	"context"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// made returns a run that was created so many seconds after noon.
func made(name string, second int, hosts ...string) *ansibleeev1.OpenStackAnsibleEE {
	run := &ansibleeev1.OpenStackAnsibleEE{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(noon.Add(time.Duration(second) * time.Second)),
	}}
	for _, h := range hosts {
		run.Spec.Targets = append(run.Spec.Targets, ansibleeev1.Target{Host: h})
	}
	return run
}

func change(run *ansibleeev1.OpenStackAnsibleEE, f func(*ansibleeev1.OpenStackAnsibleEE)) *ansibleeev1.OpenStackAnsibleEE {
	f(run)
	return run
}

func jobOf(run *ansibleeev1.OpenStackAnsibleEE) *batchv1.Job {
	owner := metav1.NewControllerRef(run, ansibleeev1.GroupVersion.WithKind("OpenStackAnsibleEE"))
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: run.Namespace, Name: run.Name, OwnerReferences: []metav1.OwnerReference{*owner}}}
}

func gate(t *testing.T, objects ...client.Object) *admission {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, ansibleeev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return newAdmission(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&ansibleeev1.OpenStackAnsibleEE{}, hostIndex, indexHosts).
		WithIndex(&ansibleeev1.OpenStackAnsibleEE{}, machineIndex, indexMachines).Build())
}

// waitsFor is the run that keeps a run out, empty if none does.
func waitsFor(t *testing.T, a *admission, run *ansibleeev1.OpenStackAnsibleEE) string {
	t.Helper()
	other, err := a.admit(context.Background(), run)
	if err != nil {
		t.Fatal(err)
	}
	if other == nil {
		return ""
	}
	return other.Name
}

func TestWhoWaitsForWhom(t *testing.T) {
	me := made("me", 5, "h1", "h2")
	other := func(second int, hosts ...string) *ansibleeev1.OpenStackAnsibleEE {
		return made("other", second, hosts...)
	}
	started := func(r *ansibleeev1.OpenStackAnsibleEE) { r.Status.Hash = map[string]string{inputKey: "h"} }
	later := other(9, "h2")
	for name, c := range map[string]struct {
		others []client.Object
		waits  bool
	}{
		"no one is there":                                           {nil, false},
		"another run has other hosts":                               {[]client.Object{change(other(1, "h3"), started)}, false},
		"another run names no hosts":                                {[]client.Object{change(other(1), started)}, false},
		"another run has a host and was created before":             {[]client.Object{other(1, "h3", "h2")}, true},
		"another run has a host and was created later":              {[]client.Object{other(9, "h2")}, false},
		"of two in one second the name decides, here for the other": {[]client.Object{made("a", 5, "h2")}, true},
		"of two in one second the name decides, here for this one":  {[]client.Object{made("z", 5, "h2")}, false},
		"a later one has started, as its status says":               {[]client.Object{change(other(9, "h2"), started)}, true},
		"a later one has started, as its Job says":                  {[]client.Object{later, jobOf(later)}, true},
		"a Job of that name belongs to something else":              {[]client.Object{later, jobOf(made("else", 0))}, false},
		"another one has ended": {[]client.Object{change(other(1, "h2"), func(r *ansibleeev1.OpenStackAnsibleEE) {
			started(r)
			r.Status.JobStatus = ansibleeev1.JobFailed
		})}, false},
		"another one is in another namespace": {[]client.Object{change(other(1, "h2"), func(r *ansibleeev1.OpenStackAnsibleEE) { r.Namespace = "elsewhere" })}, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := gate(t, append(c.others, me.DeepCopy())...)
			if got := waitsFor(t, a, me); (got != "") != c.waits {
				t.Errorf("it waits for %q; want that it waits: %v", got, c.waits)
			}
		})
	}
}

// on gives the targets of a run machines, in their order.
func on(run *ansibleeev1.OpenStackAnsibleEE, machines ...string) *ansibleeev1.OpenStackAnsibleEE {
	for i, m := range machines {
		run.Spec.Targets[i].Machine = m
	}
	return run
}

func TestAMachineIsInOneRunAtATime(t *testing.T) {
	const address = "10.0.0.1:22"
	elsewhere := func(r *ansibleeev1.OpenStackAnsibleEE) { r.Namespace = "elsewhere" }
	for name, c := range map[string]struct {
		other *ansibleeev1.OpenStackAnsibleEE
		waits bool
	}{
		"under another name":                {on(made("other", 1, "b"), address), true},
		"under another name in a namespace": {change(on(made("other", 1, "b"), address), elsewhere), true},
		"created later":                     {on(made("other", 9, "b"), address), false},
		"another machine":                   {on(made("other", 1, "b"), "10.0.0.2:22"), false},
		"of a run that is not known":        {made("other", 1, "b"), false},
	} {
		me := on(made("me", 5, "a", "c"), address)
		if got := waitsFor(t, gate(t, c.other, me.DeepCopy()), me); (got != "") != c.waits {
			t.Errorf("%s: it waits for %q; want that it waits: %v", name, got, c.waits)
		}
	}
}

func TestWhatIsSharedIsNamed(t *testing.T) {
	a := on(made("me", 5, "x", "a"), "", "10.0.0.1:22")
	for want, b := range map[string]*ansibleeev1.OpenStackAnsibleEE{
		"a":                made("other", 1, "a"),
		"a (10.0.0.1:22)":  on(made("other", 1, "b"), "10.0.0.1:22"),
		"a (10.0.0.1:22) ": on(change(made("other", 1, "a"), func(r *ansibleeev1.OpenStackAnsibleEE) { r.Namespace = "elsewhere" }), "10.0.0.1:22"),
	} {
		if got := shared(a, b); got != strings.TrimSpace(want) {
			t.Errorf("shared = %q; want %q", got, want)
		}
	}
}

// TestARunThatWasLetInCounts : neither its status nor its Job need be in the cache.
func TestARunThatWasLetInCounts(t *testing.T) {
	early, late := made("early", 1, "h"), made("late", 2, "h")
	a := gate(t, late)
	if got := waitsFor(t, a, late); got != "" {
		t.Fatalf("late waits for %s, which the cache does not show yet", got)
	}
	if err := a.Reader.(client.Client).Create(context.Background(), early.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if got := waitsFor(t, a, early); got != "late" {
		t.Errorf("early waits for %q; want late, which has the host", got)
	}
	if got := waitsFor(t, a, late); got != "" {
		t.Errorf("late waits for %s on a second try; it has the host", got)
	}
}
