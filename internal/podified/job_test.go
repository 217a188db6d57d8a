package podified

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	podifiedv1 "github.com/edpm-operators/edpm-operators/apis/common/podified"
)

// play runs the commands as a Job does, and returns what it leaves as its
// termination message, and whether it succeeds.
func play(t *testing.T, commands ...[]string) (message string, succeeds bool) {
	t.Helper()
	dir := t.TempDir()
	text := strings.NewReplacer("/dev/termination-log", filepath.Join(dir, "message"), "/tmp/output", filepath.Join(dir, "output")).Replace(script(commands))
	command := exec.Command("/bin/bash", "-c", text)
	command.Env = append(os.Environ(), causesVariable+"="+patterns(causes))
	output, err := command.CombinedOutput()
	t.Logf("the output is %s", output)
	left, readErr := os.ReadFile(filepath.Join(dir, "message"))
	if readErr != nil && !os.IsNotExist(readErr) {
		t.Fatal(readErr)
	}
	return string(left), err == nil
}

// What nova-manage 26.2 says of MariaDB 10.11.
func TestAJobLeavesNothingButTheReasonOfItsFailure(t *testing.T) {
	says := func(text string) []string { return []string{"/bin/sh", "-c", `echo "$0" >&2; exit 255`, text} }
	for name, c := range map[string]struct {
		commands [][]string
		message  string
		succeeds bool
	}{
		"a password that is wrong": {
			[][]string{says(`oslo_db: (pymysql.err.OperationalError) (1045, "Access denied for user 'nova'@'localhost' (using password: YES)")`)}, "DatabaseAccessDenied", false,
		},
		"a user without rights": {[][]string{says(`(pymysql.err.OperationalError) (1044, "Access denied for user 'nova'@'%' to database 'nova_api'")`)}, "DatabaseAccessDenied", false},
		"no such host": {
			[][]string{says(`(pymysql.err.OperationalError) (2003, "Can't connect to MySQL server on 'db.nowhere.svc' ([Errno -2] Name or service not known)")`)}, "DatabaseUnreachable", false,
		},
		"no such database":                 {[][]string{says(`(pymysql.err.OperationalError) (1049, "Unknown database 'nova_cell1'")`)}, "DatabaseMissing", false},
		"a schema of a newer version":      {[][]string{says(`alembic.util.exc.CommandError: Can't locate revision identified by 'deadbeef'`)}, "SchemaTooNew", false},
		"anything else, with a password":   {[][]string{says(`connection = mysql://nova:hunter2@db`)}, "", false},
		"what succeeds although it warns":  {[][]string{{"/bin/echo", "Lost connection to MySQL, trying again"}}, "", true},
		"the second of three":              {[][]string{{"/bin/true"}, says("(1049, x)"), {"/bin/echo", "Access denied for user"}}, "DatabaseMissing", false},
		"words that the shell understands": {[][]string{{"/usr/bin/test", "a'b $(exit 1) *", "=", `a'b $(exit 1) *`}}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			if message, succeeds := play(t, c.commands...); message != c.message || succeeds != c.succeeds {
				t.Errorf("it leaves %q and succeeds: %v; want %q and %v", message, succeeds, c.message, c.succeeds)
			}
		})
	}
}

func TestWhatKeepsAPodOfAJobFromSucceeding(t *testing.T) {
	ended := func(code int32, message string) *corev1.ContainerStateTerminated {
		return &corev1.ContainerStateTerminated{ExitCode: code, Message: message}
	}
	for name, c := range map[string]struct {
		status corev1.ContainerStatus
		reason string
		text   string
	}{
		"nothing, before it has started": {corev1.ContainerStatus{}, "", ""},
		"nothing, while it starts":       {corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}, "", ""},
		"nothing, when it has succeeded": {corev1.ContainerStatus{State: corev1.ContainerState{Terminated: ended(0, "")}}, "", ""},
		"its end":                        {corev1.ContainerStatus{State: corev1.ContainerState{Terminated: ended(1, "DatabaseMissing")}}, "DatabaseMissing", "create it"},
		"its last end, while it runs again": {
			corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, LastTerminationState: corev1.ContainerState{Terminated: ended(1, "SchemaTooNew")}},
			"SchemaTooNew", "newer than the image",
		},
		"a text that is no cause": {corev1.ContainerStatus{State: corev1.ContainerState{Terminated: ended(1, "hunter2")}}, "JobFailing", "its command fails"},
		"an image that there is not": {
			corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}}, "JobFailing", "ImagePullBackOff: no such image",
		},
		"a Secret that there is not": {
			corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: "no Secret"}}}, "JobFailing", "no Secret",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := troubleOf(&corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{c.status}}}, causes)
			if string(got.Reason) != c.reason || !strings.Contains(got.Text, c.text) || strings.Contains(got.Text, "hunter2") {
				t.Errorf("it is %+v; want %s with %q", got, c.reason, c.text)
			}
		})
	}
}

func TestAServiceNamesTheContainerThatEndsAndNothingOfItsOutput(t *testing.T) {
	failed := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Message: "hunter2"}}
	completed := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}
	waiting := func(reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
	unready := time.Now().Truncate(time.Second)
	runningSince := func(t time.Time) corev1.ContainerState {
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(t)}}
	}
	running := runningSince(unready)
	text := func(code int) string {
		return fmt.Sprintf("container api of pod api-0 has ended with exit code %d: kubectl logs --namespace ns --previous --container api api-0 shows why", code)
	}
	const noImage = "pod api-0 does not start: ErrImagePull: not found"
	for name, c := range map[string]struct {
		state, last corev1.ContainerState
		want, init  string
	}{
		"while it starts for the first time":                  {waiting("ContainerCreating", ""), corev1.ContainerState{}, "", ""},
		"when it has ended as none should":                    {completed, corev1.ContainerState{}, text(0), ""},
		"when it has failed":                                  {failed, corev1.ContainerState{}, text(3), text(3)},
		"while it waits to be started again":                  {waiting("CrashLoopBackOff", "back-off 10s"), failed, text(3), text(3)},
		"while it runs again":                                 {running, failed, text(3), text(3)},
		"while it runs again, as it ended with 0":             {running, completed, text(0), ""},
		"when it has run since before the pod became unready": {runningSince(unready.Add(-time.Second)), failed, "", ""},
		"when there is no such image":                         {waiting("ErrImagePull", "not found"), corev1.ContainerState{}, noImage, noImage},
	} {
		status := []corev1.ContainerStatus{{Name: "api", State: c.state, LastTerminationState: c.last}}
		conditions := []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(unready)}}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "api-0"}, Status: corev1.PodStatus{Conditions: conditions, ContainerStatuses: status}}
		if got := failing(pod); got != c.want {
			t.Errorf("%s: it is %q; want %q", name, got, c.want)
		}
		pod.Status = corev1.PodStatus{Conditions: conditions, InitContainerStatuses: status}
		if got := failing(pod); got != c.init {
			t.Errorf("an init container, %s: it is %q; want %q", name, got, c.init)
		}
	}
}

func TestAJobRunsAgainForWhatItReadsAlone(t *testing.T) {
	base := Job{Image: "i", Commands: [][]string{{"a", "b"}}, Config: map[string][]byte{"f": []byte("x")}}
	change := func(f func(*Job)) *Job {
		job := base
		f(&job)
		return &job
	}
	for name, c := range map[string]struct {
		job  *Job
		same bool
	}{
		"another node":       {change(func(j *Job) { j.NodeSelector = map[string]string{"a": "b"} }), true},
		"another image":      {change(func(j *Job) { j.Image = "j" }), false},
		"another password":   {change(func(j *Job) { j.Config = map[string][]byte{"f": []byte("y")} }), false},
		"other words":        {change(func(j *Job) { j.Commands = [][]string{{"a b"}} }), false},
		"one command more":   {change(func(j *Job) { j.Commands = [][]string{{"a"}, {"b"}} }), false},
		"a file of the same": {change(func(j *Job) { j.Config = map[string][]byte{"g": []byte("x")} }), false},
	} {
		if same := c.job.hash() == base.hash(); same != c.same {
			t.Errorf("%s: the hash is the same: %v; want %v", name, same, c.same)
		}
	}
}

// Every reason that a script can leave is a reason of the API.
func TestEveryCauseSaysWhatToDo(t *testing.T) {
	for _, c := range causes {
		if c.Reason == podifiedv1.JobFailingReason || strings.ContainsAny(string(c.Reason), " \n") || !strings.Contains(c.Text, ": ") {
			t.Errorf("the cause is %+v", c)
		}
	}
}

func TestHashWithToken(t *testing.T) {
	first, second := hashWithToken("a", "1", ""), hashWithToken("a", "2", "")
	for name, c := range map[string]struct{ hash, token, done, want string }{
		"without a token":                       {"a", "", "a", "a"},
		"a token asks for another run":          {"a", "1", "a", first},
		"the same token asks for none":          {"a", "1", first, first},
		"another token asks for another run":    {"a", "2", first, second},
		"a token that is removed asks for none": {"a", "", first, first},
		"other inputs ask for one":              {"b", "", first, "b"},
		"other inputs of a similar hash too":    {"a", "", "ab", "a"},
	} {
		if got := hashWithToken(c.hash, c.token, c.done); got != c.want {
			t.Errorf("%s: the hash is %s; want %s", name, got, c.want)
		}
	}
	if first == second || nameHash(first) == nameHash(second) || nameHash("a") != "a" {
		t.Error("tokens do not tell Jobs apart")
	}
}

func TestWhatAContainerLeavesIsShownOnlyWhereItMayBe(t *testing.T) {
	causes := []Cause{{Reason: "Plain", Text: "do this"}, {Reason: "Detailed", Text: "Do that", Detailed: true}}
	for message, want := range map[string]trouble{
		"Plain":                          {"Plain", "do this"},
		"Plain\npassword":                {},
		"Detailed":                       {"Detailed", "Do that"},
		"Detailed\nrevision a2 of cell1": {"Detailed", "revision a2 of cell1. Do that"},
		"Detailed\n<b>u@h\x1b[0m\n%s":    {"Detailed", "b u h 0m s. Do that"},
		"Other\nrevision a2":             {},
		"password":                       {},
	} {
		if got := knownCause(&corev1.ContainerStateTerminated{Message: message}, causes); got != want {
			t.Errorf("%q is shown as %+v; want %+v", message, got, want)
		}
	}
	long := knownCause(&corev1.ContainerStateTerminated{Message: "Detailed\n" + strings.Repeat("a", 4000)}, causes)
	if len(long.Text) > mostDetails+20 {
		t.Errorf("%d characters are shown", len(long.Text))
	}
}
