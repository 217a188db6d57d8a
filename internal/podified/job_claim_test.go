package podified

import (
	"errors"
	"testing"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

func TestAJobOfSomebodyElseIsLeftAlone(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{batchv1.AddToScheme, corev1.AddToScheme, novav1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	owner := &novav1.NovaCell{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "nova-cell1", UID: "uid"}}
	theirs := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "nova-cell1-db-sync-0123456789"}}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(owner, theirs).Build()
	r := &jobRun{
		deployment: &deployment{Deployer: &Deployer{Client: api, Live: api}, owner: owner}, Job: &Job{Name: "nova-cell1-db-sync"},
		condition: condition.DBSyncReadyCondition, want: &batchv1.Job{ObjectMeta: theirs.ObjectMeta},
	}
	err := r.claimJob(t.Context())
	if halt := (*phase.Halt)(nil); !errors.As(err, &halt) || halt.Reason != common.ConflictReason || halt.Type != condition.DBSyncReadyCondition {
		t.Errorf("the claim ends with %v; want a Conflict", err)
	}
	after := &batchv1.Job{}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(theirs), after); err != nil || len(after.OwnerReferences) > 0 {
		t.Errorf("the Job is %+v (%v); want it left as it was", after.ObjectMeta, err)
	}
}
