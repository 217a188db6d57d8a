package upgradeable

import (
	"context"
	"testing"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
)

func runIn(status ansibleeev1.JobStatus) *ansibleeev1.OpenStackAnsibleEE {
	run := &ansibleeev1.OpenStackAnsibleEE{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "run"}}
	run.Status.JobStatus = status
	return run
}

func TestOLMWaitsForRuns(t *testing.T) {
	no := metav1.Condition{Type: operatorsv2.Upgradeable, Status: metav1.ConditionFalse, Reason: RunsInProgress}
	yes := metav1.Condition{Type: operatorsv2.Upgradeable, Status: metav1.ConditionTrue, Reason: NoRuns}
	other := metav1.Condition{Type: "Other", Status: metav1.ConditionFalse, Reason: "Theirs"}
	for name, c := range map[string]struct {
		run    *ansibleeev1.OpenStackAnsibleEE
		before []metav1.Condition
		want   metav1.Condition
	}{
		"nothing was ever run":                     {nil, nil, yes},
		"a run is at work":                         {runIn(ansibleeev1.JobRunning), nil, no},
		"a run has not started":                    {runIn(""), nil, no},
		"a run has failed":                         {runIn(ansibleeev1.JobFailed), nil, yes},
		"a manager of before saw a run":            {nil, []metav1.Condition{no}, yes},
		"others have conditions there":             {runIn(ansibleeev1.JobRunning), []metav1.Condition{other, yes}, no},
		"a run is at work, and that is said there": {runIn(ansibleeev1.JobRunning), []metav1.Condition{no}, no},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{ansibleeev1.AddToScheme, operatorsv2.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			condition := &operatorsv2.OperatorCondition{ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "edpm.v1"}}
			condition.Spec.Conditions = c.before
			objects := []client.Object{condition}
			if c.run != nil {
				objects = append(objects, c.run)
			}
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&ansibleeev1.OpenStackAnsibleEE{}).Build()
			r := &Reconciler{Client: api, Live: api, Condition: client.ObjectKeyFromObject(condition)}
			versions := map[string]bool{}
			for range 3 {
				if _, err := r.Reconcile(context.Background(), ctrl.Request{}); err != nil {
					t.Fatal(err)
				}
				if err := api.Get(context.Background(), r.Condition, condition); err != nil {
					t.Fatal(err)
				}
				versions[condition.ResourceVersion] = true
			}
			got := meta.FindStatusCondition(condition.Spec.Conditions, operatorsv2.Upgradeable)
			if got == nil || got.Status != c.want.Status || got.Reason != c.want.Reason {
				t.Errorf("the condition is %+v; want %s because of %s", got, c.want.Status, c.want.Reason)
			}
			if len(versions) != 1 {
				t.Errorf("it is written again although nothing has changed")
			}
			if len(c.before) > 1 && meta.FindStatusCondition(condition.Spec.Conditions, "Other") == nil {
				t.Error("the condition of others is lost")
			}
		})
	}
}
