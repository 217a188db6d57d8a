package controllers_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/controllers"
	"github.com/edpm-operators/edpm-operators/internal/podified"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/story"
)

// databases lets the Jobs of a namespace succeed, and counts them by name.
type databases struct {
	mu  sync.Mutex
	ran map[string]map[types.UID]bool
	// does are what a Job does before it has succeeded.
	does []func(*batchv1.Job)
}

// startDatabases does it until the story ends.
func startDatabases(namespace string, does ...func(*batchv1.Job)) *databases {
	d := &databases{ran: map[string]map[types.UID]bool{}, does: does}
	story.Each(namespace, &batchv1.JobList{}, func(ctx context.Context, job *batchv1.Job) {
		if job.Status.CompletionTime == nil && job.DeletionTimestamp.IsZero() {
			d.succeed(ctx, job)
		}
	}, client.MatchingLabels{podified.AppLabel: podified.JobApp})
	return d
}

func (d *databases) succeed(ctx context.Context, job *batchv1.Job) {
	for _, does := range d.does {
		does(job)
	}
	now, before := metav1.Now(), client.MergeFrom(job.DeepCopy())
	job.Status.StartTime, job.Status.CompletionTime, job.Status.Succeeded = &now, &now, 1
	for _, t := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: t, Status: corev1.ConditionTrue, Reason: "CompletionsReached", LastTransitionTime: now})
	}
	if api.Status().Patch(ctx, job, before) != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ran[job.Name] == nil {
		d.ran[job.Name] = map[types.UID]bool{}
	}
	d.ran[job.Name][job.UID] = true
}

// times are how often each Job ran, by its name, which has a hash of its inputs.
func (d *databases) times() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	times := map[string]int{}
	for name, uids := range d.ran {
		times[name] = len(uids)
	}
	return times
}

// makeNovaWithDatabases makes a Nova with an API and two cells, and the Secrets that it reads.
func (w *world) makeNovaWithDatabases() *novav1.Nova {
	GinkgoHelper()
	nova := MakeNova("nova", w.ns, "osp-secret", "cell1")
	nova.Spec.APIServiceTemplate.Replicas = ptr.To[int32](1)
	nova.Spec.CellTemplates[novav1.Cell0Name] = novav1.NovaCellTemplate{HasAPIAccess: true}
	secret := MakeSecret("osp-secret", w.ns, "NovaPassword", "p")
	secret.Data["NovaAPIDatabasePassword"], secret.Data["NovaCellDatabasePassword"] = []byte("a"), []byte("d")
	w.make(secret, nova)
	for _, cell := range []string{"cell0", "cell1"} {
		w.make(MakeSecret("rabbitmq-transport-url-nova-"+cell+"-transport", w.ns, "transport_url", "rabbit://"+cell))
	}
	return nova
}

var _ = Describe("A Nova with databases of its own", func() {
	// prepared returns the hashes of the Jobs that the Nova and its cells remember.
	prepared := func(w *world, g Gomega) map[string]string {
		all := map[string]string{}
		maps.Copy(all, get(g, MakeNova("nova", w.ns, "")).Status.Jobs)
		for _, cell := range []string{"nova-cell0", "nova-cell1"} {
			maps.Copy(all, get(g, MakeCell(cell, w.ns).Obj()).Status.Jobs)
		}
		return all
	}

	Context("prepares each database once for each content even if the manager dies at any write", func() {
		eachDeath(2, 8, func(rng *rand.Rand) {
			w := newWorld(func(o *controllers.Options) { o.Images.NovaAPI, o.Images.NovaConductor = "api:1", "conductor:1" })
			w.running.end()
			done := startDatabases(w.ns)
			w.makeNovaWithDatabases()
			w.running = startManager(w.ns, w.opts)
			at, answered := 1+rng.IntN(45), rng.IntN(2) == 0
			By(fmt.Sprintf("dying at write %d, answered: %v, in %s", at, answered, w.ns))
			w.wire.cutAfter(at, answered).orUntil(func(g Gomega) { g.Expect(prepared(w, g)).To(HaveLen(7)) })
			w.restart()
			Eventually(func(g Gomega) { g.Expect(prepared(w, g)).To(HaveLen(7)) }).Should(Succeed())
			Expect(done.times()).To(HaveLen(7))
			Expect(done.times()).To(HaveEach(1))

			By("removing the Jobs and starting the manager again")
			Expect(api.DeleteAllOf(ctx, &batchv1.Job{}, client.InNamespace(w.ns), client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
			w.restart()
			w.calm()
			Expect(done.times()).To(HaveEach(1))
		})
	})
})
