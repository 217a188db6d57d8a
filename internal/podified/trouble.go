package podified

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"

	podifiedv1 "github.com/edpm-operators/edpm-operators/apis/common/podified"
)

// causesVariable has the patterns of the known causes in the environment of a Job.
const causesVariable = "CAUSES"

// Cause of a failure that the output of a Job shows.
type Cause struct {
	Reason condition.Reason
	// Pattern is an extended regular expression for grep. A service, which has none, leaves
	// the reason itself.
	Pattern string
	// Text says what is wrong and what to do.
	Text string
	// Detailed reports whether the container leaves what it is about after the reason, in
	// another line, which is no secret and precedes Text.
	Detailed bool
}

// causes of all Jobs, by the numbers of MySQL's errors and by what alembic says. The
// first one that matches counts.
var causes = []Cause{
	{Reason: podifiedv1.SchemaTooNewReason, Pattern: `Can't locate revision|VersionNotFoundError|[Dd]atabase version [^ ]+ is (newer|higher)`,
		Text: "the schema of the database is newer than the image: set an image of the version that made it, or a newer one"},
	{Reason: podifiedv1.DatabaseAccessDeniedReason, Pattern: `\((1044|1045|1698),|Access denied for user`,
		Text: "the database server denies access: correct the user or its password, or grant it the database"},
	{Reason: podifiedv1.DatabaseMissingReason, Pattern: `\(1049,|Unknown database`,
		Text: "the database does not exist on the server: create it"},
	{Reason: podifiedv1.DatabaseUnreachableReason, Pattern: `\((2002|2003|2005|2006|2013),|Can't connect to (MySQL|server)|Lost connection to (MySQL|server)`,
		Text: "the database server does not answer: correct its address, or start it"},
}

// script runs the commands one after the other. If one fails, it leaves the reason of
// the cause that the output shows as the termination message, and nothing else of it:
// an output can hold what a status must not.
func script(commands [][]string) string {
	var all []string
	for _, command := range commands {
		words := make([]string, 0, len(command))
		for _, word := range command {
			words = append(words, quote(word))
		}
		all = append(all, strings.Join(words, " "))
	}
	return `set -o pipefail
{ ` + strings.Join(all, " &&\n") + `
} 2>&1 | tee /tmp/output && exit 0
status=$?
while read -r reason pattern; do
  if grep --quiet --extended-regexp -e "$pattern" /tmp/output; then
    printf %s "$reason" > /dev/termination-log
    break
  fi
done <<< "$` + causesVariable + `"
exit "$status"
`
}

// plain words need no quotes.
var plain = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// quote returns one word of the shell.
func quote(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// patterns are causes as script reads them.
func patterns(causes []Cause) string {
	lines := make([]string, 0, len(causes))
	for _, c := range causes {
		if c.Pattern != "" {
			lines = append(lines, string(c.Reason)+" "+c.Pattern)
		}
	}
	return strings.Join(lines, "\n")
}

// trouble keeps a pod of a Job from succeeding.
type trouble struct {
	Reason condition.Reason
	Text   string
}

// troubleOf says what keeps a pod of a Job with such causes from succeeding; empty for
// nothing. The failure of the last attempt counts until the next one has ended.
func troubleOf(pod *corev1.Pod, causes []Cause) trouble {
	if unscheduled(pod) {
		return trouble{podifiedv1.PodsPendingReason, "the scheduler finds no node for pod " + pod.Name + ": " + statusOf(pod, corev1.PodScheduled).Message}
	}
	if _, ended := failure(pod.Status.ContainerStatuses); ended != nil {
		return causeOf(ended, causes)
	}
	if text := blocked(pod.Name, pod.Status.ContainerStatuses); text != "" {
		return trouble{podifiedv1.JobFailingReason, text}
	}
	return trouble{}
}

// failing says which container of a pod of a service does not stay up, or cannot be started;
// empty for none. How it has ended is in its log alone, which can hold what a status must not.
func failing(pod *corev1.Pod) string {
	name, ended := lastFailure(pod)
	if ended == nil {
		return blocked(pod.Name, slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses))
	}
	return fmt.Sprintf("container %[1]s of pod %[2]s has ended with exit code %[3]d: kubectl logs --namespace %[4]s --previous --container %[1]s %[2]s shows why",
		name, pod.Name, ended.ExitCode, pod.Namespace)
}

// lastFailure returns the container of a pod of a service that does not stay up, and how it
// has ended; nil if there is none.
func lastFailure(pod *corev1.Pod) (string, *corev1.ContainerStateTerminated) {
	containers := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	unready := statusOf(pod, corev1.PodReady).LastTransitionTime
	for i := range containers {
		// One that has run since before that has ended for another reason, long ago.
		if running := containers[i].State.Running; running != nil && running.StartedAt.Before(&unready) {
			containers[i].LastTerminationState = corev1.ContainerState{}
		}
	}
	name, ended := failure(containers)
	if ended == nil {
		// A service is not to end, and those of oslo.service that do not come up end with 0.
		name, ended = lastEnd(containers[len(pod.Status.InitContainerStatuses):], func(*corev1.ContainerStateTerminated) bool { return true })
	}
	return name, ended
}

// failure returns the first container that has failed in its last attempt, and how
// that ended; nil if none has.
func failure(containers []corev1.ContainerStatus) (string, *corev1.ContainerStateTerminated) {
	return lastEnd(containers, func(ended *corev1.ContainerStateTerminated) bool { return ended.ExitCode != 0 })
}

// lastEnd returns the first container whose last attempt has ended in a way that counts,
// and how; nil if there is none.
func lastEnd(containers []corev1.ContainerStatus, counts func(*corev1.ContainerStateTerminated) bool) (string, *corev1.ContainerStateTerminated) {
	for _, container := range containers {
		for _, ended := range []*corev1.ContainerStateTerminated{container.State.Terminated, container.LastTerminationState.Terminated} {
			if ended != nil && counts(ended) {
				return container.Name, ended
			}
		}
	}
	return "", nil
}

// blocked says why the kubelet does not start a container; empty if it does, or is about to.
func blocked(pod string, containers []corev1.ContainerStatus) string {
	for _, container := range containers {
		if waiting := container.State.Waiting; waiting != nil &&
			(strings.HasPrefix(waiting.Reason, "Err") || strings.HasSuffix(waiting.Reason, "Error") || strings.HasSuffix(waiting.Reason, "BackOff")) {
			return "pod " + pod + " does not start: " + waiting.Reason + ": " + waiting.Message
		}
	}
	return ""
}

// sameTrouble reports whether the same keeps two pods from succeeding, whatever causes
// their Jobs have.
func sameTrouble(a, b *corev1.Pod) bool {
	_, was := failure(a.Status.ContainerStatuses)
	_, is := failure(b.Status.ContainerStatuses)
	return troubleOf(a, nil) == troubleOf(b, nil) && (was == nil || is == nil || was.Message == is.Message)
}

// causeOf is the known cause of a failure of a Job, or that it is unknown.
func causeOf(ended *corev1.ContainerStateTerminated, causes []Cause) trouble {
	return cmp.Or(knownCause(ended, causes), trouble{podifiedv1.JobFailingReason, "its command fails"})
}

// knownCause trusts nothing that a container leaves but the name of a cause, and what it is
// about where the cause is Detailed. It is empty where that is none.
func knownCause(ended *corev1.ContainerStateTerminated, causes []Cause) trouble {
	reason, details := splitMessage(ended.Message)
	for _, c := range causes {
		switch {
		case reason != string(c.Reason):
		case c.Detailed && details != "":
			return trouble{c.Reason, details + ". " + c.Text}
		case details == "":
			return trouble{c.Reason, c.Text}
		}
	}
	return trouble{}
}

// mostDetails is how many bytes are shown of what a container leaves.
const mostDetails = 1000

// strange are characters that no text has which is to be shown.
var strange = regexp.MustCompile(`[^\w .,:;'()/=-]+`)

// splitMessage returns the reason in the first line of a termination message, and what
// follows it in plain characters.
func splitMessage(message string) (reason, details string) {
	reason, details, _ = strings.Cut(message, "\n")
	details = strings.TrimSpace(strange.ReplaceAllString(details, " "))
	if len(details) > mostDetails {
		details = details[:mostDetails] + " ..."
	}
	return reason, details
}
