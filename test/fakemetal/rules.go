package fakemetal

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
)

//go:embed rules.yaml
var rules []byte

// rulesInForce is how long an API server may take to enforce a policy.
const rulesInForce = time.Minute

// InstallRules has the API server refuse what the webhook of baremetal-operator refuses,
// and returns when it does.
func InstallRules(ctx context.Context, api client.Client) error {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(rules), 4096)
	for {
		obj := &unstructured.Unstructured{}
		err := decoder.Decode(obj)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = api.Create(ctx, obj)
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("installing the rules of baremetal-operator: %w", err)
		}
	}
	invalid := &metal3v1.BareMetalHost{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "invalid"},
		Spec:       metal3v1.BareMetalHostSpec{DisablePowerOff: true},
	}
	return wait.PollUntilContextTimeout(ctx, tick, rulesInForce, true, func(ctx context.Context) (bool, error) {
		err := api.Create(ctx, invalid.DeepCopy(), client.DryRunAll)
		return apierrors.IsForbidden(err), nil
	})
}
