package controllers_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/fakekube"
)

var _ = Describe("A run that a user creates", func() {
	var w *world
	var run *ansibleeev1.OpenStackAnsibleEE

	BeforeEach(func() {
		w = newWorld()
		run = MakeRun("r", w.ns)
	})
	job := func() *batchv1.Job { return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "r"}} }
	uid := func(g Gomega) types.UID { return get(g, job()).UID }

	It("becomes one Job, and shows what became of the hosts", func() {
		w.make(run)
		w.ready(run)
		w.condition(run, ansibleeev1.JobReadyCondition, "True/Ready/", "Job completed")
		status := get(Default, run).Status
		Expect(status.JobStatus).To(Equal(ansibleeev1.JobSucceeded))
		Expect(status.Hosts).To(Equal([]ansibleeev1.HostStatus{{Name: "localhost", OK: 3, Changed: 1, StepsDone: ptr.To[int32](1)}}))
		Expect(status.HostsSummary).To(Equal("1/1"))
		Expect(status.JobName).To(Equal("r"))
		Expect(status.StartTime).NotTo(BeNil())
		Expect(status.CompletionTime).NotTo(BeNil())
		Expect(w.hosts.Pods()).To(Equal(1))
		Expect(metav1.IsControlledBy(get(Default, job()), run)).To(BeTrue())
	})

	It("ends with its Pod, before its Job says so", func() {
		w.hosts.Lag(time.Hour)
		w.make(run)
		w.ready(run)
		Expect(get(Default, run).Status.HostsSummary).To(Equal("1/1"))
		Expect(get(Default, job()).Status.Conditions).To(BeEmpty())
	})

	It("waits, and says for what, until its environment can be made", func() {
		run.Spec.Env = []corev1.EnvVar{envFromSecret("TOKEN", "env", "token"), envFromConfigMap("PROXY", "env", "proxy")}
		w.make(run)
		w.halted(run, condition.InputReadyCondition, common.SecretMissingReason, `Secret "env" does not exist`)
		w.make(MakeSecret("env", w.ns, "token", ""))
		w.halted(run, condition.InputReadyCondition, common.ConfigMapMissingReason, `ConfigMap "env" does not exist`)
		w.make(MakeConfigMap("env", w.ns, "proxy", "p"))
		w.ready(run)
		w.setSecret("env", "token", "another")
		w.calm()
		Expect(w.hosts.Pods()).To(Equal(1), "a run that a person made is run again only when they ask for it")
	})

	It("retries as often as backoffLimit says, and then fails for good", func() {
		run.Spec.BackoffLimit = ptr.To[int32](2)
		w.sick(map[string]fakekube.Outcome{"localhost": fakekube.Failed})
		w.make(run)
		w.halted(run, ansibleeev1.JobReadyCondition, ansibleeev1.JobFailedReason, "1 of 1 hosts failed: localhost (task Configure: boom on localhost)")
		Expect(get(Default, run).Status.JobStatus).To(Equal(ansibleeev1.JobFailed))
		Expect(w.hosts.Pods()).To(Equal(3))
		w.calm()
		w.restart()
		annotate(run, "un", "related")
		w.calm()
		Expect(w.hosts.Pods()).To(Equal(3), "failed is final")
		Eventually(func() []string { return w.events("r") }).Should(ContainElement(ContainSubstring("Warning Failed")))
	})

	It("reports Lost when its Pod dies without a recap", func() {
		run.Spec.BackoffLimit = ptr.To[int32](0)
		w.sick(map[string]fakekube.Outcome{"localhost": fakekube.Killed})
		w.make(run)
		w.halted(run, ansibleeev1.JobReadyCondition, ansibleeev1.JobLostReason, "the runner left no recap", "see the log and events of Job r")
	})

	It("runs again when its spec changes, and not before the previous run has ended", func() {
		release := w.hosts.Hold()
		DeferCleanup(release)
		w.make(run)
		Eventually(w.hosts.Pods).Should(Equal(1))
		change(run, func(r *ansibleeev1.OpenStackAnsibleEE) { r.Spec.CmdLine = "-v" })
		w.halted(run, ansibleeev1.JobReadyCondition, ansibleeev1.JobRunningReason, "Waiting for the Job of the previous inputs to finish")
		Consistently(w.hosts.Pods).Should(Equal(1))
		release()
		w.ready(run)
		Expect(w.hosts.Pods()).To(Equal(2))
		Expect(w.hosts.Overlaps()).To(BeEmpty())
		w.calm()
	})

	It("runs again once for each new rerun token, and not when it is taken back", func() {
		w.make(run)
		w.ready(run)
		first := uid(Default)
		annotate(run, common.RerunAnnotation, "A")
		Eventually(uid).ShouldNot(Equal(first))
		w.ready(run)
		change(run, func(r *ansibleeev1.OpenStackAnsibleEE) { r.Annotations = nil })
		w.calm()
		annotate(run, common.RerunAnnotation, "A")
		w.calm()
		Expect(w.hosts.Pods()).To(Equal(2))
		annotate(run, common.RerunAnnotation, "B")
		Eventually(w.hosts.Pods).Should(Equal(3))
		w.ready(run)
	})

	It("runs again by a token after it failed", func() {
		run.Spec.BackoffLimit = ptr.To[int32](0)
		ill := w.sick(map[string]fakekube.Outcome{"localhost": fakekube.Failed})
		w.make(run)
		w.halted(run, ansibleeev1.JobReadyCondition, ansibleeev1.JobFailedReason)
		ill.heal("localhost")
		annotate(run, common.RerunAnnotation, "A")
		w.ready(run)
	})

	It("does not run again when its Job is removed after the end", func() {
		w.make(run)
		w.ready(run)
		remove(job())
		Expect(api.Delete(ctx, job(), backgroundDeletion)).To(Or(Succeed(), MatchError(apierrors.IsNotFound, "gone")))
		w.calm()
		w.restart()
		w.calm()
		w.ready(run)
		Expect(w.hosts.Pods()).To(Equal(1))
	})

	It("deletes its Job when it is deleted", func() {
		release := w.hosts.Hold()
		DeferCleanup(release)
		w.make(run)
		Eventually(w.hosts.Pods).Should(Equal(1))
		remove(run)
		gone(run)
		gone(job())
	})

	It("gives the runner what the spec says", func() {
		run.Spec = ansibleeev1.OpenStackAnsibleEESpec{
			PlaybookContents: "- hosts: all\n  tasks: []\n", Inventory: "all: {hosts: {h: }}", Image: "mine:1", CmdLine: "-vv",
			AnsibleTags: "a,b", AnsibleSkipTags: "c", AnsibleLimit: "h:!i", SSHKeySecretName: "key", Env: []corev1.EnvVar{{Name: "X", Value: "y"}},
			ExtraVars: map[string]apiextensionsv1.JSON{"s": {Raw: []byte(`"text"`)}, "n": {Raw: []byte(`{"l": [1, true]}`)}},
			ExtraMounts: []ansibleeev1.ExtraMount{{
				Volumes: []ansibleeev1.ExtraVolume{{Name: "v", ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}}}},
				Mounts:  []corev1.VolumeMount{{Name: "v", MountPath: "/mnt/v"}},
			}},
			PreserveJobs: ptr.To(false), UID: ptr.To[int64](2000), ServiceAccountName: "sa",
		}
		w.make(run)
		w.ready(run)
		spec := get(Default, job()).Spec
		Expect(spec.TTLSecondsAfterFinished).To(Equal(ptr.To[int32](600)), "a Job that is not preserved")
		pod := spec.Template.Spec
		c := pod.Containers[0]
		env := map[string]string{}
		for _, e := range c.Env {
			env[e.Name] = e.Value
		}
		Expect(env).To(Equal(map[string]string{
			"ANSIBLE_FORKS": "5", "RUNNER_PLAYBOOK": "- hosts: all\n  tasks: []\n", "RUNNER_INVENTORY": "all: {hosts: {h: }}",
			"RUNNER_CMDLINE": "--tags 'a,b' --skip-tags 'c' --limit 'h:!i' -vv", "RUNNER_EXTRA_VARS": "\"n\":\n  l:\n  - 1\n  - true\ns: text\n",
			"ANSIBLE_PRIVATE_KEY_FILE": "/runner/ssh/ssh-privatekey", "X": "y",
		}))
		Expect(c.Image).To(Equal("mine:1"))
		Expect(c.VolumeMounts).To(ContainElement(corev1.VolumeMount{Name: "v", MountPath: "/mnt/v"}))
		Expect(pod.SecurityContext.RunAsUser).To(Equal(ptr.To[int64](2000)))
		Expect(pod.AutomountServiceAccountToken).To(Equal(ptr.To(false)))
		Expect(c.SecurityContext.ReadOnlyRootFilesystem).To(Equal(ptr.To(true)))
		Expect(c.TerminationMessagePolicy).To(Equal(corev1.TerminationMessageReadFile), "a log can hold secrets")
	})

	It("keeps its Job by default", func() {
		w.make(run)
		w.ready(run)
		Expect(get(Default, job()).Spec.TTLSecondsAfterFinished).To(BeNil())
	})

	It("waits for its network attachments, and says which is missing", func() {
		nad := func(name string) *unstructured.Unstructured {
			u := &unstructured.Unstructured{}
			u.SetAPIVersion("k8s.cni.cncf.io/v1")
			u.SetKind("NetworkAttachmentDefinition")
			u.SetNamespace(w.ns)
			u.SetName(name)
			return u
		}
		w.make(nad("here"))
		run.Spec.NetworkAttachments = []string{"here", "later"}
		w.make(run)
		w.halted(run, ansibleeev1.NetworkAttachmentsReadyCondition, ansibleeev1.NetworkAttachmentMissingReason, `NetworkAttachmentDefinition "later" does not exist: create it in namespace `+w.ns)
		w.calm()
		Expect(w.hosts.Pods()).To(BeZero())
		w.make(nad("later"))
		w.ready(run)
		Expect(get(Default, job()).Spec.Template.Annotations).To(HaveKeyWithValue("k8s.v1.cni.cncf.io/networks",
			`[{"name":"here","namespace":"`+w.ns+`"},{"name":"later","namespace":"`+w.ns+`"}]`))

		By("removing one after the run")
		remove(nad("later"))
		w.condition(run, ansibleeev1.NetworkAttachmentsReadyCondition, "False/NetworkAttachmentMissing/Warning")
		Expect(w.hosts.Pods()).To(Equal(1))
	})

	It("says that a Job of its name exists already, and runs when that is deleted", func() {
		theirs := job()
		theirs.Labels = map[string]string{"osaee": "true"} // those without it are not in the cache, and looked for at intervals
		theirs.Spec.Suspend = ptr.To(true)
		theirs.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "x"}}}
		release := w.hosts.Hold()
		DeferCleanup(release)
		w.make(theirs, run)
		w.halted(run, ansibleeev1.JobReadyCondition, common.ConflictReason, `Job "r" exists already and was not created for OpenStackAnsibleEE/r: delete it if nothing needs it`)
		Expect(api.Delete(ctx, theirs, backgroundDeletion)).To(Succeed())
		release()
		w.ready(run)
	})

	DescribeTable("refuses or reports a spec that cannot become a Job",
		func(spoil func(*ansibleeev1.OpenStackAnsibleEE), t condition.Type, reason condition.Reason, says string) {
			spoil(run)
			err := api.Create(ctx, run)
			if t == "" {
				Expect(err).To(MatchError(ContainSubstring(says)))
				return
			}
			Expect(err).NotTo(HaveOccurred())
			w.halted(run, t, reason, says)
			w.calm()
			Expect(get(Default, run).Status.JobStatus).To(Equal(ansibleeev1.JobFailed))
			change(run, func(r *ansibleeev1.OpenStackAnsibleEE) { r.Spec = MakeRun("", "").Spec })
			w.ready(run)
		},
		Entry("a playbook and its text", func(r *ansibleeev1.OpenStackAnsibleEE) { r.Spec.PlaybookContents = "- hosts: all" },
			condition.Type(""), condition.Reason(""), "playbook and playbookContents exclude each other"),
		Entry("a mount without its volume", func(r *ansibleeev1.OpenStackAnsibleEE) {
			r.Spec.ExtraMounts = []ansibleeev1.ExtraMount{{Mounts: []corev1.VolumeMount{{Name: "none", MountPath: "/x"}}}}
		}, ansibleeev1.JobReadyCondition, ansibleeev1.InvalidSpecReason, "The API server rejects the Job"),
		Entry("a variable whose name is none", func(r *ansibleeev1.OpenStackAnsibleEE) {
			r.Spec.Env = []corev1.EnvVar{{Name: "a=b"}}
		}, ansibleeev1.JobReadyCondition, ansibleeev1.InvalidSpecReason, "The API server rejects the Job"),
	)

	It("starts once even if the manager restarts all the time", func() {
		release := w.hosts.Hold()
		DeferCleanup(release)
		w.make(run)
		for range 5 {
			w.restart()
			time.Sleep(50 * time.Millisecond)
		}
		Eventually(w.hosts.Pods).Should(Equal(1))
		release()
		w.ready(run)
		Expect(w.hosts.Pods()).To(Equal(1))
	})
})
