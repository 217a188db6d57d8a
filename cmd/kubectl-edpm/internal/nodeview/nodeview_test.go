package nodeview

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm/v1beta1"
	neutronv1 "github.com/edpm-operators/edpm-operators/apis/neutron/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
)

// noon is when everything is looked at.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }

// is a condition of a given age; a reason makes it False.
func is(t condition.Type, reason condition.Reason, severity condition.Severity, message string) condition.Condition {
	c := condition.Condition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: ago(time.Hour)}
	if reason != "" {
		c.Status, c.Reason, c.Severity, c.Message = corev1.ConditionFalse, reason, severity, message
	}
	return c
}

// node that is Ready, with nova in cell1, to be changed by the cases.
func node(change func(*Source)) Source {
	n := &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: metav1.ObjectMeta{Name: "edpm-compute-0", Generation: 2, Annotations: map[string]string{novav1.CellAnnotation: "nova-cell1"}}}
	n.Spec.Role, n.Spec.AnsibleHost = "edpm-compute", "192.168.122.100"
	n.Status.ObservedGeneration = 2
	n.Status.Conditions = condition.Conditions{
		is(condition.ReadyCondition, "", "", ""), is(condition.InputReadyCondition, "", "", ""),
		is(dataplanev1.ProvisionReadyCondition, "", "", ""), is(condition.DeploymentReadyCondition, "", "", ""),
	}
	n.Status.Services = []dataplanev1.NodeServiceStatus{{Name: "nova", Ready: true, Kind: "NovaExternalCompute", ObjectName: n.Name}}
	s := Source{Node: n, Services: map[string]Service{"nova": {Conditions: condition.Conditions{is(condition.ReadyCondition, "", "", "")}}}}
	change(&s)
	return s
}

// failNova makes nova fail on the node, and be tried again in 40 seconds.
func failNova(s *Source) {
	state := edpm.State{Phase: edpm.Failed, Step: "nova", Run: "nova-run-2", Attempt: 2, Retry: noon.Add(40 * time.Second), Message: "Start it: no image"}
	s.Node.Status.Services[0].Ready, s.Node.Status.Services[0].Message = false, "Failed: see the conditions of the object"
	failed := is(condition.DeploymentReadyCondition, "Failed", condition.SeverityWarning, state.Describe())
	ready := failed
	ready.Type = condition.ReadyCondition
	s.Services["nova"] = Service{Conditions: condition.Conditions{ready, failed}, NextRetry: &metav1.Time{Time: state.Retry}}
	s.Runs = []ansibleeev1.OpenStackAnsibleEE{
		run("nova-run-2", "nova", 2*time.Minute, ansibleeev1.HostStatus{Name: s.Node.Name, OK: 3, Failed: 1, Message: "Start it: no image"}),
		run("run-os-run", "run-os", time.Hour, ansibleeev1.HostStatus{Name: s.Node.Name, OK: 3}),
	}
}

// run that has ended the given time ago, or is under way when it has no result.
func run(name, step string, end time.Duration, hosts ...ansibleeev1.HostStatus) ansibleeev1.OpenStackAnsibleEE {
	started, ended := ago(end+time.Minute), ago(end)
	r := ansibleeev1.OpenStackAnsibleEE{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: started}}
	r.Spec.Step, r.Spec.Targets = step, []ansibleeev1.Target{{Host: "edpm-compute-0", Attempt: 2}, {Host: "edpm-compute-1", Attempt: 1}}
	r.Status.StartTime, r.Status.JobStatus = &started, ansibleeev1.JobRunning
	if len(hosts) > 0 {
		r.Status.CompletionTime, r.Status.JobStatus, r.Status.Hosts = &ended, ansibleeev1.JobFailed, hosts
	}
	return r
}

// selectAgent annotates the node for a class agent, with the entries that it shows.
func selectAgent(value string, shown ...string) func(*Source) {
	return func(s *Source) {
		class := edpmv1.EDPMServiceClass{ObjectMeta: metav1.ObjectMeta{Name: "agent"}}
		class.Spec.Annotation = "example.org/agent"
		s.Classes = []edpmv1.EDPMServiceClass{class}
		s.Node.Annotations[class.Spec.Annotation] = value
		for _, name := range shown {
			s.Node.Status.Services = append(s.Node.Status.Services, dataplanev1.NodeServiceStatus{Name: name, Ready: true, Kind: "EDPMService", ObjectName: name + "-" + s.Node.Name})
		}
	}
}

// selectOVN annotates the role for OVN, with the entries that the node shows.
func selectOVN(shown ...string) func(*Source) {
	return func(s *Source) {
		s.Role = &dataplanev1.OpenStackDataPlaneRole{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{neutronv1.OVNAnnotation: "ovn"}}}
		selectAgent("false", shown...)(s)
	}
}

// takeName makes the node say that the object of nova is that of another node.
func takeName(s *Source) {
	s.Node.Status.Services[0].Ready, s.Node.Status.Services[0].Message = false, "it is for another node"
}

func TestAServiceThatIsNotThatOfTheNodeIsNotTrue(t *testing.T) {
	phases := New(node(takeName)).Phases
	if got := phases[len(phases)-1]; got.Status != corev1.ConditionFalse || got.Message != "it is for another node" {
		t.Errorf("the phase is %+v", got)
	}
}

func TestWhetherANodeIsUp(t *testing.T) {
	for name, c := range map[string]struct {
		change    func(*Source)
		ready, up bool
	}{
		"with all services":                       {func(*Source) {}, true, true},
		"no compute needs no service":             {func(s *Source) { s.Node.Annotations, s.Node.Status.Services = nil, nil }, true, true},
		"a compute without nova yet":              {func(s *Source) { s.Node.Status.Services = nil }, true, false},
		"a service that is not ready":             {failNova, true, false},
		"a service whose object is another's":     {takeName, true, false},
		"with the service of a class":             {selectAgent("true", "agent"), true, true},
		"a service of a class that is not shown":  {selectAgent("true"), true, false},
		"a class that the node opts out of":       {selectAgent("false"), true, true},
		"a class that is being deleted":           {func(s *Source) { selectAgent("true")(s); now := ago(0); s.Classes[0].DeletionTimestamp = &now }, true, true},
		"a compute that has another service only": {func(s *Source) { s.Node.Status.Services = nil; selectAgent("true", "agent")(s) }, true, false},
		"both services of OVN":                    {selectOVN("ovn-controller", "ovn-metadata"), true, true},
		"one of two services of OVN":              {selectOVN("ovn-controller"), true, false},
		"being deleted":                           {func(s *Source) { now := ago(0); s.Node.DeletionTimestamp = &now }, true, false},
		"the operator has not seen the spec":      {func(s *Source) { s.Node.Generation = 3 }, false, false},
		"phase 0 is not through":                  {func(s *Source) { s.Node.Status.Conditions[0].Status = corev1.ConditionFalse }, false, false},
		"a node that no one has looked at so far": {func(s *Source) { s.Node.Status = dataplanev1.OpenStackDataPlaneNodeStatus{} }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if n := New(node(c.change)); n.Ready != c.ready || n.Up != c.up {
				t.Errorf("ready %v, up %v; want %v, %v", n.Ready, n.Up, c.ready, c.up)
			}
		})
	}
}

func TestProblems(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Source)
		want   []string
	}{
		"none": {func(*Source) {}, nil},
		"of the node": {func(s *Source) {
			s.Node.Status.Conditions[1] = is(condition.InputReadyCondition, "RoleMissing", condition.SeverityError, "no role")
		}, []string{"OpenStackDataPlaneNode/edpm-compute-0 InputReady RoleMissing"}},
		"of a service":                {failNova, []string{"NovaExternalCompute/edpm-compute-0 DeploymentReady Failed"}},
		"of a service no one can see": {func(s *Source) { failNova(s); s.Services = nil }, []string{"NovaExternalCompute/edpm-compute-0  "}},
		"what is awaited comes last": {func(s *Source) {
			failNova(s)
			s.Node.Status.Conditions[3] = is(condition.DeploymentReadyCondition, "Running", condition.SeverityInfo, "it runs")
		}, []string{"NovaExternalCompute/edpm-compute-0 DeploymentReady Failed", "OpenStackDataPlaneNode/edpm-compute-0 DeploymentReady Running"}},
		"what was not looked at is none": {func(s *Source) {
			s.Node.Status.Conditions[3].Status, s.Node.Status.Conditions[3].Reason = corev1.ConditionUnknown, condition.InitReason
		}, nil},
		"an old status":               {func(s *Source) { s.Node.Generation = 3 }, []string{"OpenStackDataPlaneNode/edpm-compute-0  "}},
		"a compute without a service": {func(s *Source) { s.Node.Status.Services = nil }, []string{"OpenStackDataPlaneNode/edpm-compute-0  "}},
		"a class without a service":   {selectAgent("true"), []string{"OpenStackDataPlaneNode/edpm-compute-0  "}},
		"a name that is taken":        {takeName, []string{"NovaExternalCompute/edpm-compute-0  "}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range New(node(c.change)).Problems {
				got = append(got, p.Object+" "+p.Condition+" "+p.Reason)
				if p.Message == "" {
					t.Errorf("%+v says nothing", p)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRuns(t *testing.T) {
	const host = "edpm-compute-0"
	running, ok := run("b", "nova", 0), run("a", "libvirt", time.Minute, ansibleeev1.HostStatus{Name: host, OK: 1})
	lost := run("c", "nova", time.Minute, ansibleeev1.HostStatus{Name: "edpm-compute-1", OK: 1})
	gone := run("d", "nova", time.Minute, ansibleeev1.HostStatus{Name: host, Unreachable: 1})
	own := run("e", "", time.Minute, ansibleeev1.HostStatus{Name: host, OK: 2, Failed: 1})
	own.Spec.Targets = nil
	other := run("f", "nova", time.Minute, ansibleeev1.HostStatus{Name: "edpm-compute-9", OK: 1})
	other.Spec.Targets = nil
	all := []ansibleeev1.OpenStackAnsibleEE{running, ok, lost, gone, own, other}

	names := func(step string) (list []string) {
		for _, r := range RunsOf(all, host, step) {
			list = append(list, r.Name)
		}
		return list
	}
	if diff := cmp.Diff([]string{"a", "c", "d", "e", "b"}, names("")); diff != "" {
		t.Errorf("runs of the host, the oldest first: %s", diff)
	}
	if diff := cmp.Diff([]string{"c", "d", "b"}, names("nova")); diff != "" {
		t.Errorf("runs of nova: %s", diff)
	}
	aborted := run("g", "nova", time.Minute, ansibleeev1.HostStatus{Name: host, OK: 1, StepsDone: ptr.To[int32](0)})
	if got := NewRun(&aborted, host).Outcome; got != Failed {
		t.Errorf("the outcome of a play that was aborted is %s, want %s", got, Failed)
	}
	for name, want := range map[string]string{"a": Succeeded, "b": Running, "c": NoResult, "d": Unreachable, "e": Failed} {
		for i := range all {
			if got := NewRun(&all[i], host).Outcome; all[i].Name == name && got != want {
				t.Errorf("the outcome of %s is %s, want %s", name, got, want)
			}
		}
	}
	n := New(node(func(s *Source) { s.Runs = all }))
	if n.Current == nil || n.Current.Name != "b" || n.Last == nil || n.Last.Name != "e" {
		t.Errorf("current is %+v, last %+v", n.Current, n.Last)
	}
}

func TestTextOfANode(t *testing.T) {
	want := `Node edpm-compute-0: Ready, but not its services
  role edpm-compute
  host 192.168.122.100
  cell nova-cell1

PHASE        STATUS   REASON   SINCE
inputs       True     -        60m
-1 host      True     -        60m
0 prepared   True     -        60m
1 nova       False    Failed   60m

Current run: none
Last run:    nova-run-2, step nova, attempt 2, Failed 2m ago
Next retry:  in 40s

Why it is not ready:
  NovaExternalCompute/edpm-compute-0 DeploymentReady is not True: Failed
    Step nova failed in nova-run-2 (attempt 2, next at 2026-03-01T12:00:40Z): Start it: no image

What helps: kubectl edpm explain Failed
`
	var got strings.Builder
	if err := New(node(failNova)).Text(&got, noon); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Error(diff)
	}
}

func TestTextHasWarningsOfServices(t *testing.T) {
	warned := condition.Condition{Type: condition.ServiceConfigReadyCondition, Status: corev1.ConditionTrue, Reason: novav1.OptionsWarnedReason, Message: "valid. Warnings: line 1\nline 2"}
	view := New(node(func(s *Source) {
		s.Services = map[string]Service{"nova": {Conditions: condition.Conditions{warned}}}
	}))
	var got strings.Builder
	if err := view.Text(&got, noon); err != nil {
		t.Fatal(err)
	}
	const want = "\nWarnings:\n  NovaExternalCompute/edpm-compute-0 ServiceConfigReady\n    valid. Warnings: line 1\n    line 2\n"
	if !strings.HasSuffix(got.String(), want) || len(view.Problems) > 0 {
		t.Errorf("want the warnings at the end, got %s", got.String())
	}
}

// drains gives the compute a host in nova, so many guests, and conditions.
func drains(count *novav1.GuestsStatus, conditions ...condition.Condition) func(*Source) {
	return func(s *Source) {
		service := s.Services["nova"]
		service.ComputeService, service.Guests = &novav1.ComputeServiceStatus{Host: "h"}, count
		service.Conditions = append(service.Conditions, conditions...)
		s.Services["nova"] = service
	}
}

func TestGuestsOfAHostAreShownAsFarAsTheyAreKnown(t *testing.T) {
	empty := is(novav1.DrainedCondition, "", "", "")
	empty.Reason = novav1.HostEmptyReason
	evacuating := is(novav1.EvacuatedCondition, novav1.GuestsRemainReason, condition.SeverityError, "Host h has guests")
	stuck := is(novav1.MigrationsProgressingCondition, novav1.MigrationsStuckReason, condition.SeverityError, "guest g")
	for title, c := range map[string]struct {
		change      func(*Source)
		text, brief string
	}{
		"nova does not know the host": {func(*Source) {}, "", "-"},
		"nova is not asked for them":  {drains(nil), "not counted: openstack server list --all-projects --host h", "-"},
		"a migration stands still": {drains(nil, stuck), "not counted: openstack server list --all-projects --host h; MigrationsProgressing is False: MigrationsStuck",
			"- (MigrationsStuck)"},
		"the host is drained": {drains(&novav1.GuestsStatus{Total: 3, Moving: 2, Waiting: 1}, is(novav1.DrainedCondition, novav1.DrainingReason, condition.SeverityInfo, "x")),
			"3 on host h: 2 being moved, 1 waiting; Drained is False: Draining", "3 (Draining)"},
		"the host is empty": {drains(&novav1.GuestsStatus{}, empty), "0 on host h; Drained is True: HostEmpty", "0 (HostEmpty)"},
		"the host is off": {drains(&novav1.GuestsStatus{Total: 5, Moving: 2, Remaining: 3}, evacuating), "5 on host h: 2 being moved, 3 that cannot be moved; Evacuated is False: GuestsRemain",
			"5 (GuestsRemain)"},
		"guests stay, and are shut off": {drains(&novav1.GuestsStatus{Total: 2, ShutOff: 2}), "2 on host h: 2 shut off", "2"},
	} {
		n := New(node(c.change))
		var out strings.Builder
		if err := n.Text(&out, noon); err != nil {
			t.Fatal(err)
		}
		_, text, _ := strings.Cut(out.String(), "Guests:      ")
		text, _, _ = strings.Cut(text, "\n")
		if text != c.text || n.Guests.brief() != c.brief {
			t.Errorf("%s: it says %q and %q, want %q and %q", title, text, n.Guests.brief(), c.text, c.brief)
		}
	}
}

func TestANodeThatIsUpIsNotCalledUnready(t *testing.T) {
	stuck := is(novav1.MigrationsProgressingCondition, novav1.MigrationsStuckReason, condition.SeverityError, "guest g")
	var out strings.Builder
	if err := New(node(drains(nil, stuck))).Text(&out, noon); err != nil {
		t.Fatal(err)
	}
	const want = "\nWhat is not as it should be:\n  NovaExternalCompute/edpm-compute-0 MigrationsProgressing is not True: MigrationsStuck\n    guest g\n"
	if !strings.Contains(out.String(), want) || strings.Contains(out.String(), "not ready") {
		t.Errorf("want %q, got %s", want, out.String())
	}
}

func TestTextOfARole(t *testing.T) {
	want := `Role edpm-compute: 2 of 3 nodes Ready, 1 with all services

NODE             READY   SERVICES           GUESTS         RUN          NEXT RETRY   STATUS
edpm-compute-0   True    nova (not ready)   -              nova-run-2   in 40s       Failed: Step nova failed in nova-run-2 (attempt 2, next at 2026-03-01T12:00:40Z): Start it: no image
edpm-compute-1   False   nova               -              -            -            RoleMissing: no role
edpm-compute-2   True    nova               3 (Draining)   b            -            Draining: Host h has guests
`
	named := func(name string, change func(*Source)) Node {
		n := New(node(change))
		n.Name = name
		return n
	}
	roles := Roles([]Node{
		named("edpm-compute-2", func(s *Source) {
			s.Runs = []ansibleeev1.OpenStackAnsibleEE{run("b", "nova", 0)}
			drains(&novav1.GuestsStatus{Total: 3, Moving: 2, Waiting: 1}, is(novav1.DrainedCondition, novav1.DrainingReason, condition.SeverityInfo, "Host h has guests"))(s)
		}),
		named("edpm-compute-0", failNova),
		named("edpm-compute-1", func(s *Source) {
			s.Node.Status.Conditions[0].Status = corev1.ConditionFalse
			s.Node.Status.Conditions[1] = is(condition.InputReadyCondition, "RoleMissing", condition.SeverityError, "no role\nat all")
		}),
	})
	var got strings.Builder
	if len(roles) != 1 {
		t.Fatalf("roles are %+v", roles)
	}
	if err := roles[0].Text(&got, noon); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Error(diff)
	}
}
