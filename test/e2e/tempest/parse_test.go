package tempest

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
)

const printed = `{0} tempest.api.compute.test_x.X.test_a[id-1,smoke] [0.633707s] ... ok
{1} tempest.api.compute.test_x.X.test_b [6.348985s] ... FAILED

Captured traceback:
~~~~~~~~~~~~~~~~~~~
{0} tempest.api.compute.test_x.X.test_c ... SKIPPED: Volume service is not available
{2} setUpClass (tempest.api.compute.test_y.Y) [0.000000s] ... FAILED
`

func TestWhatTempestPrintsIsRead(t *testing.T) {
	want := results{
		"tempest.api.compute.test_x.X.test_a":       {passed, ""},
		"tempest.api.compute.test_x.X.test_b":       {failed, ""},
		"tempest.api.compute.test_x.X.test_c":       {skipped, "Volume service is not available"},
		"setUpClass (tempest.api.compute.test_y.Y)": {failed, ""},
	}
	if got := parseTrace(printed); !maps.Equal(got, want) {
		t.Errorf("the results are %v; want %v", got, want)
	}
}

func TestResultsAreReadAsTheyWereWritten(t *testing.T) {
	want := results{"a.b.test_c": {passed, ""}, "a.b.test_d": {failed, "a bug of nova: 1"}, "setUpClass (a.b)": {skipped, "no cinder"}}
	var text bytes.Buffer
	if err := want.write(&text); err != nil {
		t.Fatal(err)
	}
	if got, err := readResults(strings.NewReader("# A comment.\n\n" + text.String())); err != nil || !maps.Equal(got, want) {
		t.Errorf("the results are %v (%v); want %v", got, err, want)
	}
	if _, err := readResults(strings.NewReader("passes a.b.test_c\n")); err == nil {
		t.Error("a line without a result is read")
	}
}

func TestATestThatPassedBeforeMustPass(t *testing.T) {
	before := results{"a": {passed, ""}, "b": {passed, ""}, "c": {passed, ""}, "d": {failed, "known"}, "e": {skipped, "known"}}
	now := results{"a": {passed, ""}, "b": {failed, ""}, "d": {failed, ""}, "e": {failed, ""}, "new": {failed, ""}}
	if got, want := now.worse(before), []string{"b: failed", "c: not run"}; !slices.Equal(got, want) {
		t.Errorf("worse are %q; want %q", got, want)
	}
	now.explainAs(before)
	if got, want := now.unexplained(), []string{"b", "e", "new"}; !slices.Equal(got, want) {
		t.Errorf("without a reason are %q; want %q", got, want)
	}
}

func TestWhatIsSkippedDoesNotCount(t *testing.T) {
	counted := results{"a": {passed, ""}, "b": {passed, ""}, "c": {passed, ""}, "d": {failed, ""}, "e": {skipped, ""}}
	if got := counted.share(); got != 0.75 {
		t.Errorf("the part that passes is %v; want 0.75", got)
	}
	if got := (results{}).share(); got != 0 {
		t.Errorf("of no tests %v pass", got)
	}
}
