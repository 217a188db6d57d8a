package names_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/edpm-operators/edpm-operators/internal/names"
)

// objectName draws names of objects, most of them long, as the API server takes them.
func objectName(t *rapid.T) string {
	label := rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`)
	name := strings.Join(rapid.SliceOfN(label, 1, 8).Draw(t, "labels"), ".")
	if len(name) > 253 {
		name = strings.TrimRight(name[:253], "-.")
	}
	if errs := validation.NameIsDNSSubdomain(name, false); len(errs) > 0 {
		t.Fatalf("%q is no name of an object: %v", name, errs)
	}
	return name
}

func TestEveryObjectNameFitsALabel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := objectName(t)
		value := names.Fit(name, names.MaxLabel)
		if errs := utilvalidation.IsValidLabelValue(value); len(errs) > 0 {
			t.Fatalf("%q becomes %q: %v", name, value, errs)
		}
		if len(name) <= names.MaxLabel && value != name {
			t.Fatalf("%q fits and becomes %q", name, value)
		}
	})
}

func TestEveryObjectNameFitsAJob(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := strings.ReplaceAll(objectName(t), ".", "-")
		job := names.WithHash(name, "0123456789abcdef", names.MaxLabel)
		if errs := utilvalidation.IsDNS1123Label(job); len(errs) > 0 {
			t.Fatalf("%q becomes %q: %v", name, job, errs)
		}
		if !strings.HasSuffix(job, "-0123456789") {
			t.Fatalf("%q lost its hash: %q", name, job)
		}
	})
}

func TestLongNamesStayApart(t *testing.T) {
	long := strings.Repeat("a", 62)
	seen := map[string]string{}
	for _, name := range []string{long + ".example.com", long + ".example.org", long + "-a", long + "-b", long + "a"} {
		value := names.Fit(name, names.MaxLabel)
		if other, taken := seen[value]; taken {
			t.Errorf("%s and %s both become %s", name, other, value)
		}
		if errs := utilvalidation.IsValidLabelValue(value); len(errs) > 0 {
			t.Errorf("%s becomes %s: %v", name, value, errs)
		}
		seen[value] = name
	}
}

func TestNamesOfJobs(t *testing.T) {
	hash := strings.Repeat("0123456789", 4)
	for name, want := range map[string]string{
		"nova-api-db-sync":       "nova-api-db-sync-0123456789",
		strings.Repeat("a", 80):  strings.Repeat("a", 52) + "-0123456789",
		strings.Repeat("b-", 40): strings.TrimRight(strings.Repeat("b-", 26), "-") + "-0123456789",
	} {
		if got := names.WithHash(name, hash, names.MaxLabel); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestListNamesTheFirst(t *testing.T) {
	for want, all := range map[string][]string{"": nil, "a": {"a"}, "a, b": {"a", "b"}, "a, b and 1 more": {"a", "b", "c"}} {
		if got := names.List(all, 2); got != want {
			t.Errorf("%v is listed as %q; want %q", all, got, want)
		}
	}
}
