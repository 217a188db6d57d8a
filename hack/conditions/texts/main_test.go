package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		comment   string
		condition bool
		want      text
		err       string
	}{
		"a reason has a meaning and a remedy": {
			comment: "XReason : the Secret does not exist. Nothing\nis run. Remedy: create it.\n",
			want:    text{Means: "the Secret does not exist. Nothing is run", Remedy: "create it"},
		},
		"further paragraphs are for readers of the code": {
			comment: "XReason : it is lost. Remedy: wait.\n\nDecided elsewhere.\n",
			want:    text{Means: "it is lost", Remedy: "wait"},
		},
		"a condition has a meaning": {
			comment: "XReason : the pods are ready.\n", condition: true,
			want: text{Means: "the pods are ready"},
		},
		"a reason without a remedy is refused":      {comment: "XReason : it is lost.\n", err: "reason XReason"},
		"a reason without a comment is refused":     {err: "reason XReason"},
		"a comment of another constant is refused":  {comment: "YReason : it is lost. Remedy: wait.\n", err: "reason XReason"},
		"a condition without a comment is refused":  {condition: true, err: "condition XReason"},
		"a condition that has a remedy is refused":  {comment: "XReason : it is. Remedy: wait.\n", condition: true, err: "condition XReason"},
		"a reason that means nothing is refused":    {comment: "XReason : . Remedy: wait.\n", err: "reason XReason"},
		"a condition that means nothing is refused": {comment: "XReason : .\n", condition: true, err: "condition XReason"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parse("XReason", c.comment, c.condition)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("the error is %v, want %q", err, c.err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadNamesTheConstantsOfConditionsOnly(t *testing.T) {
	got, err := read("./testdata/complete")
	if err != nil {
		t.Fatal(err)
	}
	want := []text{
		{Var: "completeExampleReady", Value: "ExampleReady", Means: "the example is ready"},
		{Var: "completeMissing", Value: "ExampleMissing", Means: "the example does not exist", Remedy: "create it"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadRefusesReasonsWithoutText(t *testing.T) {
	_, err := read("./testdata/incomplete")
	for _, want := range []string{"incomplete.go:8:", "reason MissingReason", "incomplete.go:11:", "condition ReadyCondition"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not have %q: %v", want, err)
		}
	}
}
