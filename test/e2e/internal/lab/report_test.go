package lab

import (
	"errors"
	"slices"
	"testing"
)

func TestAReportSaysWhatWasReadAndWhatCouldNotBe(t *testing.T) {
	r := &Report{lab: &Lab{Root: t.TempDir(), kubectl: "echo"}}
	r.Kubectl(t.Context(), "get", "pods")
	r.Note("host", "half", errors.New("it does not answer"))
	const want = "--- kubectl get pods\n--kubeconfig  get pods\n--- host\nhalf\nit does not answer\n"
	if got := r.out.String(); got != want {
		t.Errorf("the report is %q; want %q", got, want)
	}
}

func TestHostFlags(t *testing.T) {
	l := &Lab{}
	got := HostFlags(l.Compute(0), l.Compute(1))
	want := []string{"--host", "edpm-compute-0=192.168.122.100", "--host", "edpm-compute-1=192.168.122.101"}
	if !slices.Equal(got, want) {
		t.Errorf("the flags are %v; want %v", got, want)
	}
}
