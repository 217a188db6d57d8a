package inputs

import (
	"errors"
	"fmt"
	"testing"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	"github.com/edpm-operators/edpm-operators/internal/phase"
)

func TestWhatIsWrongWithAnInputIsAConditionWithTheRemedy(t *testing.T) {
	fault := errors.New("the API server is away")
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"nothing":          {nil, "<nil>"},
		"a fault":          {fault, "the API server is away"},
		"no Secret":        {&MissingError{Kind: "Secret", Name: "s"}, `SecretMissing: Secret "s" does not exist: create it in the same namespace`},
		"no key of it":     {&MissingError{Kind: "Secret", Name: "s", Key: "k"}, `SecretKeyMissing: Secret "s" has no key "k", or it is empty: add it`},
		"no ConfigMap":     {&MissingError{Kind: "ConfigMap", Name: "c"}, `ConfigMapMissing: ConfigMap "c" does not exist: create it in the same namespace`},
		"no key of that":   {&MissingError{Kind: "ConfigMap", Name: "c", Key: "k"}, `ConfigMapKeyMissing: ConfigMap "c" has no key "k", or it is empty: add it`},
		"wrapped":          {fmt.Errorf("reading: %w", &MissingError{Kind: "Secret", Name: "s"}), `SecretMissing: Secret "s" does not exist: create it in the same namespace`},
		"no room":          {&LimitError{"ns", "s", Limits{2, 3 << 20}}, `SecretLimit: Secret "s" is not read: objects of namespace ns refer to more than 2 Secrets, or to more than 3 MiB of Secrets; share Secrets between hosts, remove references that are not needed (it is retried within ten minutes), or raise --secrets-per-namespace of the manager`},
		"no right to know": {&ForbiddenError{"ns", "s"}, `SecretForbidden: Secret "s" cannot be read: the operators have no permissions for Secrets in namespace ns; bind their ClusterRole for Secrets in the namespace: see Rights in docs/install.md`},
	} {
		t.Run(name, func(t *testing.T) {
			err := Halt("InputReady", c.err)
			got := fmt.Sprint(err)
			if halt := (*phase.Halt)(nil); errors.As(err, &halt) {
				got = fmt.Sprintf("%s: %s", halt.Reason, halt.Message)
				if halt.Type != "InputReady" || halt.Severity != condition.SeverityWarning {
					t.Errorf("the halt is %+v", halt)
				}
			}
			if got != c.want {
				t.Errorf("it is %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestDigest(t *testing.T) {
	type data = map[string][]byte
	base := data{"a": []byte("1"), "b": []byte("2"), "c": nil}
	for range 20 {
		if Digest(data{"c": {}, "b": []byte("2"), "a": []byte("1")}) != Digest(base) {
			t.Fatal("the same data have another digest")
		}
	}
	seen := map[string]string{}
	for name, d := range map[string]data{
		"base": base, "nothing": {}, "another value": {"a": []byte("1"), "b": []byte("3"), "c": nil},
		"another key": {"a": []byte("1"), "x": []byte("2"), "c": nil}, "a key less": {"a": []byte("1"), "b": []byte("2")},
		"values swapped":          {"a": []byte("2"), "b": []byte("1"), "c": nil},
		"a boundary moved":        {"a": []byte("11:b=1:2")},
		"a boundary moved before": {"a=1:11:b": []byte("2")},
	} {
		if other, ok := seen[Digest(d)]; ok {
			t.Errorf("%q and %q have the same digest", name, other)
		}
		seen[Digest(d)] = name
	}
}
