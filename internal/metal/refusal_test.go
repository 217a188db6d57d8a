package metal

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestARefusalIsKnownByWhoGivesIt(t *testing.T) {
	answer := func(code int32, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: message}}
	}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"a webhook":                            {answer(http.StatusForbidden, `admission webhook "baremetalhost.metal3.io" denied the request: no`), true},
		"a webhook with the code of conflicts": {answer(http.StatusConflict, `admission webhook "x" denied the request: no`), true},
		"the schema":                           {answer(http.StatusUnprocessableEntity, "spec.image.url: Required value"), true},
		"a webhook that does not answer":       {answer(http.StatusInternalServerError, `Internal error occurred: failed calling webhook "x": connection refused`), true},
		"a conflict":                           {answer(http.StatusConflict, "the object has been modified"), false},
		"too many requests":                    {answer(http.StatusTooManyRequests, "later"), false},
		"etcd":                                 {answer(http.StatusInternalServerError, "etcdserver: leader changed"), false},
		"the network":                          {errors.New("connection refused"), false},
	} {
		host := machine("h")
		err := WriteError(&host, "Releasing", "Correct it", c.err)
		if IsRefusal(err) != c.want {
			t.Errorf("%s: that it is a refusal is %v: %v", name, !c.want, err)
		}
		if !c.want && !errors.Is(err, c.err) {
			t.Errorf("%s: %v does not wrap %v", name, err, c.err)
		}
	}
}

func TestARefusalIsFitForAMessage(t *testing.T) {
	host := machine("h")
	hostile := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Message: "\x1b[2J" + strings.Repeat("x", 100_000)}}
	if text := WriteError(&host, "Releasing", "Correct it", hostile).Error(); len(text) > 1000 || strings.Contains(text, "\x1b") || !strings.HasSuffix(text, "Correct it") {
		t.Errorf("the message has %d bytes: %.100q", len(text), text)
	}
}
