package options

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// TestALogThatBreaksOffIsReadAgain : without a client anything that is stored is a panic.
func TestALogThatBreaksOffIsReadAgain(t *testing.T) {
	logs := func(context.Context, string, string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(`{"options": {"DEFAULT"`)), nil
	}
	k := &keeping{Keeper: &Keeper{Logs: logs}, owner: &novav1.NovaCell{}, image: "i"}
	err := k.finish(t.Context(), &corev1.Pod{})
	var halt *phase.Halt
	if !errors.As(err, &halt) || halt.Reason != novav1.LogUnreadableReason || !strings.Contains(halt.Message, "breaks off") {
		t.Errorf("finish = %v; want LogUnreadable", err)
	}
}
