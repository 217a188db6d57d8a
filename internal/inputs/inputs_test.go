package inputs

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var ctx = context.Background()

// shelf is an API server with Secrets, and counts how often their content is read.
type shelf struct {
	*Reader
	api   client.Client
	reads int
	fail  error
}

func newShelf(objects ...client.Object) *shelf {
	s := &shelf{}
	var mu sync.Mutex
	s.api = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).Build()
	live := interceptor.NewClient(s.api.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			mu.Lock()
			s.reads++
			mu.Unlock()
			if s.fail != nil {
				return s.fail
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	s.Reader = NewReader(s.api, live)
	return s
}

func newSecret(name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: data}
}

func TestASecretIsReadAgainOnlyWhenItChanged(t *testing.T) {
	secret := newSecret("s", map[string][]byte{"k": []byte("one")})
	s := newShelf(secret)
	expect := func(value string, reads int) {
		t.Helper()
		for range 5 {
			got, err := s.SecretKey(ctx, "ns", "s", "k")
			if err != nil || string(got) != value {
				t.Fatalf("SecretKey = %q, %v; want %q", got, err, value)
			}
		}
		if s.reads != reads {
			t.Errorf("the content was read %d times; want %d", s.reads, reads)
		}
	}
	expect("one", 1)
	if err := s.api.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
		t.Fatal(err)
	}
	secret.Data["k"] = []byte("two")
	if err := s.api.Update(ctx, secret); err != nil {
		t.Fatal(err)
	}
	expect("two", 2)
	if err := s.api.Delete(ctx, secret); err != nil {
		t.Fatal(err)
	}
	var missing *MissingError
	if _, err := s.SecretKey(ctx, "ns", "s", "k"); !errors.As(err, &missing) {
		t.Errorf("the error of a deleted Secret is %v; want a MissingError", err)
	}
	if err := s.api.Create(ctx, newSecret("s", map[string][]byte{"k": []byte("three")})); err != nil {
		t.Fatal(err)
	}
	expect("three", 3)
}

func TestWhatIsMissingIsNamedWithTheRemedy(t *testing.T) {
	s := newShelf(newSecret("s", map[string][]byte{"empty": nil}))
	for name, c := range map[string]struct {
		read func() error
		want MissingError
		says string
	}{
		"a Secret": {
			func() error { _, err := s.Secret(ctx, "ns", "none"); return err },
			MissingError{Kind: "Secret", Name: "none"}, `Secret "none" does not exist: create it`,
		},
		"a Secret of another namespace": {
			func() error { _, err := s.Secret(ctx, "other", "s"); return err },
			MissingError{Kind: "Secret", Name: "s"}, "in the same namespace",
		},
		"a key of a Secret": {
			func() error { _, err := s.SecretKey(ctx, "ns", "s", "k"); return err },
			MissingError{Kind: "Secret", Name: "s", Key: "k"}, `Secret "s" has no key "k", or it is empty: add it`,
		},
		"a key with an empty value": {
			func() error { _, err := s.SecretKey(ctx, "ns", "s", "empty"); return err },
			MissingError{Kind: "Secret", Name: "s", Key: "empty"}, "or it is empty",
		},
		"a ConfigMap": {
			func() error { _, err := s.ConfigMap(ctx, "ns", "none"); return err },
			MissingError{Kind: "ConfigMap", Name: "none"}, `ConfigMap "none" does not exist: create it`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var missing *MissingError
			err := c.read()
			if !errors.As(err, &missing) || *missing != c.want {
				t.Fatalf("the error is %#v; want %#v", err, c.want)
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error says %q; want %q in it", err, c.says)
			}
		})
	}
}

func TestAFaultIsNotTakenForAMissingSecret(t *testing.T) {
	s := newShelf(newSecret("s", nil))
	s.fail = errors.New("the API server is away")
	var missing *MissingError
	if _, err := s.Secret(ctx, "ns", "s"); !errors.Is(err, s.fail) || errors.As(err, &missing) {
		t.Errorf("the error is %v; want the fault", err)
	}
}

func TestAConfigMapHasTextAndBinaryData(t *testing.T) {
	s := newShelf(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"},
		Data:       map[string]string{"t": "text"}, BinaryData: map[string][]byte{"b": {0, 1}},
	})
	got, err := s.ConfigMap(ctx, "ns", "c")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]byte{"t": []byte("text"), "b": {0, 1}}, got); diff != "" {
		t.Errorf("the data differ (-want +got):\n%s", diff)
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

func TestReadersCanBeShared(t *testing.T) {
	s := newShelf(newSecret("s", map[string][]byte{"k": []byte("v")}))
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, err := s.SecretKey(ctx, "ns", "s", "k"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
