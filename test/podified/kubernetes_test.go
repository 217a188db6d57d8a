package podified_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/edpm-operators/edpm-operators/internal/podified"
)

// zones of the nodes of seeds/001.
var zones = map[string]string{
	"master-0": "zoneA", "worker-0": "zoneA", "worker-3": "zoneA",
	"master-1": "zoneB", "worker-1": "zoneB",
	"master-2": "zoneC", "worker-2": "zoneC",
}

const storageClass = "lvms-local-storage"

// kubernetes is what envtest lacks of a cluster.
type kubernetes struct {
	mu sync.Mutex
	// sick are nodes whose kubelets do not answer.
	sick map[string]bool
	// crashes returns the termination message of pods of services whose container fails as
	// soon as it is started, and is empty for others.
	crashes func(*corev1.Pod) string
	// fails returns what a pod of a Job leaves as its termination message when it
	// fails; empty for one that succeeds.
	fails func(*corev1.Pod) string
	// leaves returns what a pod of a Job leaves when it succeeds.
	leaves func(*corev1.Pod) string
}

func startKubernetes() *kubernetes {
	GinkgoHelper()
	k := &kubernetes{sick: map[string]bool{}}
	kubeconfig := writeKubeconfig(env.Config)
	run("kube-controller-manager", "--kubeconfig="+kubeconfig, "--leader-elect=false", "--use-service-account-credentials=false",
		"--controllers=statefulset-controller,job-controller,garbage-collector-controller,persistentvolume-binder-controller", "--secure-port=0",
		"--concurrent-statefulset-syncs=10", "--kube-api-qps=500", "--kube-api-burst=1000")
	run("kube-scheduler", "--kubeconfig="+kubeconfig, "--leader-elect=false", "--secure-port=0", "--kube-api-qps=500", "--kube-api-burst=1000")
	Expect(api.Create(ctx, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: storageClass}, Provisioner: "example.org/local",
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer),
	})).To(Succeed())
	for name := range zones {
		node := newNode(name)
		Expect(api.Create(ctx, node)).To(Succeed())
		node.Spec.Taints = nil // admission takes a new node for one that is not ready
		Expect(api.Update(ctx, node)).To(Succeed())
	}
	k.startKubelets()
	return k
}

// run starts a component of Kubernetes and ends it with the suite.
func run(name string, args ...string) {
	GinkgoHelper()
	log, err := os.Create(filepath.Join(GinkgoT().TempDir(), name+".log"))
	Expect(err).NotTo(HaveOccurred())
	command := exec.Command(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), name), args...)
	command.Stdout, command.Stderr = log, log
	Expect(command.Start()).To(Succeed())
	DeferCleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if text, err := os.ReadFile(log.Name()); err == nil && CurrentSpecReport().Failed() {
			AddReportEntry(name, string(text))
		}
	})
}

func writeKubeconfig(config *rest.Config) string {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: config.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, file)).To(Succeed())
	return file
}

func newNode(name string) *corev1.Node {
	room := corev1.ResourceList{"cpu": resource.MustParse("16"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("500")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": zones[name], corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()},
		}},
	}
}

// label sets or, with an empty value, removes a label of a node until the story ends.
func label(node, key, value string) {
	GinkgoHelper()
	set := func(value string) {
		change(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, func(n *corev1.Node) {
			if value == "" {
				delete(n.Labels, key)
			} else {
				n.Labels[key] = value
			}
		})
	}
	set(value)
	DeferCleanup(set, newNode(node).Labels[key])
}

// fail makes a node stop answering, or answer again, as the node controller
// would show it.
func (k *kubernetes) fail(name string, failed bool) {
	GinkgoHelper()
	k.mu.Lock()
	k.sick[name] = failed
	k.mu.Unlock()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	change(node, func(n *corev1.Node) {
		n.Spec.Taints = nil
		if failed {
			n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule}}
		}
	})
	node.Status.Conditions = newNode(name).Status.Conditions
	if failed {
		node.Status.Conditions[0].Status, node.Status.Conditions[0].Reason = corev1.ConditionUnknown, "NodeStatusUnknown"
	}
	Expect(api.Status().Update(ctx, node)).To(Succeed())
	if !failed {
		k.sync(name)
	}
}

// sync lets the kubelet of a node look at its pods again.
func (k *kubernetes) sync(node string) {
	GinkgoHelper()
	pods := &corev1.PodList{}
	Expect(api.List(ctx, pods)).To(Succeed())
	for i := range pods.Items {
		if pods.Items[i].Spec.NodeName == node {
			_, err := k.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&pods.Items[i])})
			Expect(err).NotTo(HaveOccurred())
		}
	}
}

// startKubelets pretends the kubelets, and what makes volumes on their disks.
func (k *kubernetes) startKubelets() {
	GinkgoHelper()
	config := rest.CopyConfig(env.Config)
	config.QPS = -1
	options := ctrl.Options{Scheme: env.Scheme, Metrics: metricsserver.Options{BindAddress: "0"}}
	options.Controller.SkipNameValidation = ptr.To(true)
	mgr, err := ctrl.NewManager(config, options)
	Expect(err).NotTo(HaveOccurred())
	Expect(ctrl.NewControllerManagedBy(mgr).Named("kubelets").For(&corev1.Pod{}).Complete(k)).To(Succeed())
	Expect(ctrl.NewControllerManagedBy(mgr).Named("disks").For(&corev1.PersistentVolumeClaim{}).Complete(disks{})).To(Succeed())
	// It serves no webhooks, so that env.StartManager would wait for them in vain.
	background, stop := context.WithCancel(context.Background())
	DeferCleanup(stop)
	go func() { _ = mgr.Start(background) }()
}

// Reconcile starts a pod that has a node, and ends one that is to end.
func (k *kubernetes) Reconcile(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
	pod := &corev1.Pod{}
	if err := api.Get(ctx, req.NamespacedName, pod); err != nil || pod.Spec.NodeName == "" {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	k.mu.Lock()
	sick, crashes, fails, leaves := k.sick[pod.Spec.NodeName], k.crashes, k.fails, k.leaves
	k.mu.Unlock()
	switch {
	case sick:
		return reconcile.Result{}, nil
	case !pod.DeletionTimestamp.IsZero():
		return reconcile.Result{}, client.IgnoreNotFound(api.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID}))
	case pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure:
		return k.runJob(pod, fails, leaves)
	case podified.Ready(pod):
		return reconcile.Result{}, nil
	}
	message := ""
	if crashes != nil {
		message = crashes(pod)
	}
	return k.runService(pod, message)
}

// runService lets the container of a pod run, or fail with a message to be started again.
func (*kubernetes) runService(pod *corev1.Pod, message string) (reconcile.Result, error) {
	now := metav1.Now()
	runs := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now}
	var again reconcile.Result
	if pod.Status.StartTime == nil {
		pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &now
	}
	if message != "" {
		again.RequeueAfter, runs.Status = 200*time.Millisecond, corev1.ConditionFalse
		container := pod.Spec.Containers[0]
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: container.Name, Image: container.Image,
			State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Message: message}},
		}}
	}
	pod.Status.Conditions = append(slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == runs.Type }), runs)
	return again, client.IgnoreNotFound(api.Status().Update(ctx, pod))
}

// disks makes a volume for each claim, on the node that the scheduler chose.
type disks struct{}

func (disks) Reconcile(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
	claim := &corev1.PersistentVolumeClaim{}
	if err := api.Get(ctx, req.NamespacedName, claim); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	node := claim.Annotations["volume.kubernetes.io/selected-node"]
	if node == "" || claim.Spec.VolumeName != "" {
		return reconcile.Result{}, nil
	}
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + string(claim.UID)},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes, StorageClassName: ptr.Deref(claim.Spec.StorageClassName, storageClass),
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/" + claim.Name}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
			}}}},
		},
	}
	return reconcile.Result{}, client.IgnoreAlreadyExists(api.Create(ctx, volume))
}

// runJob lets the container of a Job fail, to be started again, or succeed.
func (k *kubernetes) runJob(pod *corev1.Pod, fails, leaves func(*corev1.Pod) string) (reconcile.Result, error) {
	if pod.Status.Phase == corev1.PodSucceeded {
		return reconcile.Result{}, nil
	}
	ended := corev1.ContainerStatus{Name: pod.Spec.Containers[0].Name, Image: pod.Spec.Containers[0].Image}
	var again reconcile.Result
	message := ""
	if fails != nil {
		message = fails(pod)
	}
	if message == "" {
		if leaves != nil {
			message = leaves(pod)
		}
		pod.Status.Phase, ended.State.Terminated = corev1.PodSucceeded, &corev1.ContainerStateTerminated{Reason: "Completed", Message: message}
	} else {
		pod.Status.Phase, again.RequeueAfter = corev1.PodRunning, 200*time.Millisecond
		ended.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
		ended.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Message: message}
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{ended}
	return again, client.IgnoreNotFound(api.Status().Update(ctx, pod))
}
