package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crenvtest "sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/edpm-operators/edpm-operators/apis/common"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	"github.com/edpm-operators/edpm-operators/controllers"
	"github.com/edpm-operators/edpm-operators/internal/coexistence"
	"github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/envtest"
)

// asManager is the variable that makes the test's own program the manager.
const asManager = "EDPM_TEST_AS_MANAGER"

// shared is the API server of all tests but the one with a large cluster.
var shared = envtest.Shared{Options: envtest.Options{AddToScheme: []func(*runtime.Scheme) error{apiextensionsv1.AddToScheme}}}

func TestMain(m *testing.M) {
	if os.Getenv(asManager) != "" {
		main()
		os.Exit(0)
	}
	flag.Parse()
	os.Exit(envtest.Run(m, &shared))
}

// process is a manager in a process of its own, and what it says.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan error
	mu   sync.Mutex
	log  []string
}

// launch starts a manager that believes to be in the Pod.
func launch(t *testing.T, env *envtest.Env, pod string, flags ...string) *process {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := env.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	flags = append([]string{"--leader-elect=false", "--webhooks=false", "--health-probe-bind-address=0", "--kubeconfig=" + kubeconfig}, flags...)
	return start(t, []string{"POD_NAMESPACE=" + namespace, "POD_NAME=" + pod}, flags...)
}

// start starts a manager with the environment of the test, without its GOGC, and more
// variables.
func start(t *testing.T, variables []string, flags ...string) *process {
	t.Helper()
	p := &process{t: t, done: make(chan error, 1)}
	p.cmd = exec.Command(os.Args[0], flags...)
	p.cmd.Env = slices.Concat(os.Environ(), []string{asManager + "=1", "GOGC="}, variables)
	out, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.mu.Lock()
			p.log = append(p.log, lines.Text())
			p.mu.Unlock()
		}
		p.done <- p.cmd.Wait()
	}()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() }) // it may have ended
	return p
}

func (p *process) said(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.log, func(line string) bool { return strings.Contains(line, text) })
}

// ends waits until the process has ended by itself, without an error.
func (p *process) ends() {
	p.t.Helper()
	select {
	case err := <-p.done:
		if err != nil {
			p.t.Fatalf("the manager ended with %v:\n%s", err, strings.Join(p.log, "\n"))
		}
	case <-time.After(time.Minute):
		p.t.Fatal("the manager has not ended")
	}
}

// eventually waits until there is nothing to complain of.
func (p *process) eventually(complaint func() string) {
	p.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		why := complaint()
		if why == "" {
			return
		}
		if time.Now().After(deadline) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.t.Fatalf("%s; the manager says:\n%s", why, strings.Join(p.log, "\n"))
		}
	}
}

// makePod makes the Pod that the manager believes to be in. Events of one that had the
// name before are deleted.
func makePod(t *testing.T, api client.Client, name string) {
	t.Helper()
	if err := api.DeleteAllOf(t.Context(), &eventsv1.Event{}, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	create(t, api, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "x"}}},
	})
}

// conditionOf returns what the Pod says of its operators, as status/reason: message.
func conditionOf(t *testing.T, api client.Client, pod string) string {
	t.Helper()
	p := &corev1.Pod{}
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: pod}, p); err != nil {
		t.Fatal(err)
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodConditionType(common.OperatorsRunningCondition) {
			return fmt.Sprintf("%s/%s: %s", c.Status, c.Reason, c.Message)
		}
	}
	return "none"
}

// warnings are the events of the Pod.
func warnings(t *testing.T, api client.Client, pod string) []string {
	t.Helper()
	list, out := &eventsv1.EventList{}, []string{}
	if err := api.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	for _, e := range list.Items {
		if e.Regarding.Name == pod {
			out = append(out, e.Type+" "+e.Reason+" "+strings.SplitN(e.Note, ":", 2)[0])
		}
	}
	slices.Sort(out)
	return out
}

// setPartOf labels a definition as one of ours, or as one of no one.
func setPartOf(t *testing.T, api client.Client, name string, value any) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{common.PartOfLabel: value}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := api.Patch(t.Context(), crd, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		t.Fatal(err)
	}
}

// cluster returns the API server as it was before other tests changed definitions and
// webhooks.
func cluster(t *testing.T) *envtest.Env {
	t.Helper()
	env := shared.Env(t)
	define(t, env)
	return env
}

// define makes the definitions those of edpm-operators, and returns once its kinds can be
// created: for a while the API server calls webhooks that no longer exist.
func define(t *testing.T, env *envtest.Env) {
	t.Helper()
	crds := crenvtest.CRDInstallOptions{Paths: []string{envtest.File("config", "crd", "bases")}, ErrorIfPathMissing: true, MaxTime: time.Minute}
	if _, err := crenvtest.InstallCRDs(env.Config, crds); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return env.Client.Create(ctx, builders.MakeTopology("any", namespace).Spread("zone").Obj(), client.DryRunAll) == nil, nil
	})
	if err != nil {
		t.Fatalf("creating a Topology: %v", err)
	}
}

func TestOperatorsOfForeignKindsAreLeftOut(t *testing.T) {
	env := cluster(t)
	api := env.Client
	// As if glance-operator had been there before.
	setPartOf(t, api, "glances.glance.openstack.org", nil)
	makePod(t, api, "manager-0")
	theirs := &glancev1.Glance{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "theirs"}}
	create(t, api, theirs)
	topology := builders.MakeTopology("t", namespace).Spread("zone").Obj()
	create(t, api, topology)

	p := launch(t, env, "manager-0")
	p.eventually(func() string {
		if got := conditionOf(t, api, "manager-0"); !strings.HasPrefix(got, "False/ForeignDefinition: Running: ansibleee, dataplane, edpm, neutron, nova, topology; core is disabled: it needs operator glance") {
			return "the Pod says " + got
		}
		return ""
	})
	want := []string{"Warning ForeignDefinition Running"}
	p.eventually(func() string { return cmp.Diff(want, warnings(t, api, "manager-0")) })
	if !p.said(`"Left out operator","operator":"glance","reason":"ForeignDefinition"`) {
		t.Errorf("the log does not tell of it:\n%s", strings.Join(p.log, "\n"))
	}
	p.eventually(func() string {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(topology), topology); err != nil || topology.Status.ObservedGeneration != topology.Generation {
			return fmt.Sprintf("the operators that are free do not work: %+v (%v)", topology.Status, err)
		}
		return ""
	})
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil || theirs.ResourceVersion == "" || len(theirs.Status.Conditions) > 0 || len(theirs.Finalizers) > 0 {
		t.Errorf("the object of glance-operator was touched: %+v (%v)", theirs, err)
	}

	t.Log("A manager that is started again says nothing twice")
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.ends()
	p = launch(t, env, "manager-0")
	p.eventually(func() string {
		if !p.said("Starting workers") {
			return "no controller works"
		}
		return ""
	})

	t.Log("The definition is replaced by ours: the manager ends to be started again")
	setPartOf(t, api, "glances.glance.openstack.org", common.PartOf)
	p.ends()
	if diff := cmp.Diff(want, warnings(t, api, "manager-0")); diff != "" {
		t.Errorf("the events differ (-want +got):\n%s", diff)
	}
	p = launch(t, env, "manager-0")
	p.eventually(func() string {
		if got := conditionOf(t, api, "manager-0"); got != "True/AllRunning: Running: ansibleee, core, dataplane, edpm, glance, neutron, nova, topology" {
			return "the Pod says " + got
		}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil || len(theirs.Status.Conditions) == 0 {
			return fmt.Sprintf("no one looks after the Glance: %+v (%v)", theirs.Status, err)
		}
		return ""
	})

	t.Log("The definition of the Topology goes: whoever follows one cannot work, and nothing is left")
	deleteDefinition(t, api, "topologies.topology.openstack.org")
	p.ends()
	p = launch(t, env, "manager-0")
	p.eventually(func() string {
		if got := conditionOf(t, api, "manager-0"); !strings.HasPrefix(got, "False/MissingDefinition: Running: none; ") {
			return "the Pod says " + got
		}
		return ""
	})

	t.Log("It waits for definitions, and ends to be started again when they are there")
	define(t, env)
	p.ends()
	if !p.said("Restarting: the operators that can run") {
		t.Errorf("the manager ended without definitions:\n%s", strings.Join(p.log, "\n"))
	}
}

func TestTopologyRunsAloneWithoutTheKindsThatHoldIt(t *testing.T) {
	env := cluster(t)
	api := env.Client
	for _, name := range coexistence.Names(controllers.Operators) {
		if name != "topologies.topology.openstack.org" && name != "novacells.nova.openstack.org" {
			deleteDefinition(t, api, name)
		}
	}
	makePod(t, api, "manager-0")
	held := builders.MakeTopology("held", namespace).Spread("zone").Obj()
	held.Finalizers = []string{"openstack.org/glanceapi-of-a-kind-that-went", "openstack.org/novacell-gone"}
	create(t, api, held)

	p := launch(t, env, "manager-0", "--operators=topology")
	p.eventually(func() string {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(held), held); err != nil || held.Status.ObservedGeneration != held.Generation || len(held.Finalizers) > 0 {
			return fmt.Sprintf("the Topology has finalizers %v and status %+v (%v)", held.Finalizers, held.Status, err)
		}
		return ""
	})

	t.Log("One of the kinds comes or goes: the manager ends to be started again")
	deleteDefinition(t, api, "novacells.nova.openstack.org")
	p.ends()
}

// deleteDefinition returns once the definition is gone.
func deleteDefinition(t *testing.T, api client.Client, name string) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := api.Delete(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); apierrors.IsNotFound(err) {
			return
		}
	}
	t.Fatalf("definition %s is not gone", name)
}

func TestThePermissionOnDefinitionsIsForThoseThatAreWatched(t *testing.T) {
	source, err := os.ReadFile("zz_generated.permission.go")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`resources=customresourcedefinitions,resourceNames=([^,]+),`).FindSubmatch(source)
	if m == nil {
		t.Fatal("there is no marker")
	}
	got := strings.Split(string(m[1]), ";")
	slices.Sort(got)
	want := coexistence.Names(append(slices.Clone(controllers.Operators), controllers.OptionalOperators...))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the names of the marker differ (-internal/coexistence +marker):\n%s", diff)
	}
}
