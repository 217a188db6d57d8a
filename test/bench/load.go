package main

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

const (
	namespace = "bench"
	cellName  = "nova-cell1"
	sshKey    = "dataplane-ansible-ssh-private-key-secret"
	// topologyName is what the nodes of a single role refer to.
	topologyName = "runners"
)

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }

// prepare makes what the nodes need: a namespace, Secrets and a cell.
func prepare(ctx context.Context, c client.Client) error {
	key := make([]byte, 400) // as long as a real one
	for i := range key {
		key[i] = 'k'
	}
	for _, obj := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		newTopology(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: floorNamespace}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: necessaryNamespace}},
		&corev1.Secret{ObjectMeta: meta(sshKey), Data: map[string][]byte{"ssh-privatekey": key}},
		&corev1.Secret{ObjectMeta: meta("osp-secret"), Data: map[string][]byte{"ServicePassword": []byte("12345678")}},
		&corev1.Secret{ObjectMeta: meta("rabbitmq-cell1"), Data: map[string][]byte{"transport_url": []byte("rabbit://nova:secret@rabbitmq-cell1.bench.svc:5672/?ssl=1")}},
		&novav1.NovaCell{ObjectMeta: meta(cellName), Spec: novav1.NovaCellSpec{
			CellName: "cell1", Secret: "osp-secret", CellMessageBusSecretName: "rabbitmq-cell1", KeystoneAuthURL: "https://keystone.bench.svc:5000",
		}},
	} {
		if err := c.Create(ctx, obj); err != nil {
			return fmt.Errorf("creating %s: %w", obj.GetName(), err)
		}
	}
	// Pods are refused until their namespace has its service account.
	return until(ctx, 50*time.Millisecond, func() (bool, error) {
		return c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "default"}, &corev1.ServiceAccount{}) == nil, nil
	})
}

// until polls until done returns true or an error.
func until(ctx context.Context, every time.Duration, done func() (bool, error)) error {
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(every):
		}
	}
}

func roleName(i int) string { return fmt.Sprintf("edpm-compute-r%02d", i) }

// newTopology lets runners go to every node of the cluster, evenly.
func newTopology() *topologyv1.Topology {
	t := &topologyv1.Topology{ObjectMeta: meta(topologyName)}
	t.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
	}}
	return t
}

func newRole(i int) *dataplanev1.OpenStackDataPlaneRole {
	role := &dataplanev1.OpenStackDataPlaneRole{ObjectMeta: meta(roleName(i))}
	role.Spec = dataplanev1.OpenStackDataPlaneRoleSpec{
		DataPlane: "openstack-edpm", PreProvisioned: ptr.To(true),
		NodeTemplate: dataplanev1.NodeSection{AnsibleUser: "cloud-admin", AnsiblePort: 22, AnsibleSSHPrivateKeySecret: sshKey},
	}
	return role
}

func nodeName(i int) string { return fmt.Sprintf("edpm-compute-%04d", i) }

func newNode(i, roles int) *dataplanev1.OpenStackDataPlaneNode {
	node := &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: meta(nodeName(i))}
	node.Spec = dataplanev1.OpenStackDataPlaneNodeSpec{
		Role: roleName(i % roles), HostName: node.Name,
		AnsibleHost: fmt.Sprintf("10.%d.%d.%d", 16+i>>14, i>>7&127, i&127+1),
	}
	return node
}

// annotate gives every node its cell, as kubectl annotate with a few workers would.
func (l load) annotate(ctx context.Context, c client.Client) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, novav1.CellAnnotation, cellName))
	return parallel(16, l.nodes, func(i int) error {
		return c.Patch(ctx, &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: meta(nodeName(i))}, patch)
	})
}

// apply creates the roles and then the nodes, as kubectl apply with a few
// workers would.
func (l load) apply(ctx context.Context, c client.Client) error {
	for i := range l.roles {
		role := newRole(i)
		if !l.later {
			role.Annotations = map[string]string{novav1.CellAnnotation: cellName}
		}
		if l.single() {
			role.Spec.DeployStrategy.MaxUnavailable = ptr.To(intstr.FromString("10%"))
		}
		if err := c.Create(ctx, role); err != nil {
			return fmt.Errorf("creating a role: %w", err)
		}
	}
	return parallel(16, l.nodes, func(i int) error {
		node := newNode(i, l.roles)
		if l.single() {
			node.Spec.TopologyRef = &topologyv1.TopologyRef{Name: topologyName}
		}
		return c.Create(ctx, node)
	})
}

// parallel calls f for 0 to n-1 and returns the first error.
func parallel(workers, n int, f func(int) error) error {
	next, errs := make(chan int), make(chan error, workers)
	for range workers {
		go func() {
			var failed error
			for i := range next {
				if failed == nil {
					failed = f(i)
				}
			}
			errs <- failed
		}()
	}
	for i := range n {
		next <- i
	}
	close(next)
	var first error
	for range workers {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// allReady reports whether every compute is Ready.
func allReady(ctx context.Context, c client.Client, n int) (bool, error) {
	list := &novav1.NovaExternalComputeList{}
	if err := c.List(ctx, list, client.InNamespace(namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}}); err != nil {
		return false, err
	}
	ready := 0
	for i := range list.Items {
		if list.Items[i].Status.Conditions.IsTrue("Ready") {
			ready++
		}
	}
	return ready == n, nil
}

// runs counts the runs and their hosts, once for each step, and tells how long their Jobs took on
// average.
func runs(ctx context.Context, c client.Client) (count, targets int, mean time.Duration, err error) {
	list := &ansibleeev1.OpenStackAnsibleEEList{}
	jobs := &batchv1.JobList{}
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return 0, 0, 0, err
	}
	if err := c.List(ctx, jobs, client.InNamespace(namespace)); err != nil {
		return 0, 0, 0, err
	}
	var total time.Duration
	for i := range jobs.Items {
		if end := jobs.Items[i].Status.CompletionTime; end != nil {
			total += end.Sub(jobs.Items[i].CreationTimestamp.Time)
		}
	}
	for i := range list.Items {
		targets += len(list.Items[i].Spec.Targets) * len(list.Items[i].StepNames())
	}
	return len(list.Items), targets, total / time.Duration(max(1, len(jobs.Items))), nil
}

// probeJob is as short as a Job of a run can be.
func probeJob(name string) *batchv1.Job {
	labels := map[string]string{"osaee": "true"}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: labels},
		Spec: batchv1.JobSpec{
			BackoffLimit: ptr.To[int32](0), PodReplacementPolicy: ptr.To(batchv1.Failed),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{common.HostsAnnotation: "probe"}},
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever,
					Containers:    []corev1.Container{{Name: "probe", Image: "probe", ImagePullPolicy: corev1.PullIfNotPresent}},
				},
			},
		},
	}
}

// probeJobs measures how long Kubernetes and KWOK take, with nothing else to
// do, from the creation of a Job to its completion: one alone (the median of
// three), and many at once.
func probeJobs(ctx context.Context, c client.Client, many int) (one, all time.Duration, err error) {
	var singles []time.Duration
	for i := range 3 {
		d, err := timeJobs(ctx, c, fmt.Sprintf("probe-%d", i), 1)
		if err != nil {
			return 0, 0, err
		}
		singles = append(singles, d)
	}
	all, err = timeJobs(ctx, c, "probe-many", many)
	return median(singles), all, err
}

func timeJobs(ctx context.Context, c client.Client, prefix string, n int) (time.Duration, error) {
	start := time.Now()
	if err := parallel(8, n, func(i int) error { return c.Create(ctx, probeJob(fmt.Sprintf("%s-%d", prefix, i))) }); err != nil {
		return 0, fmt.Errorf("creating a Job: %w", err)
	}
	left := n
	err := until(ctx, 20*time.Millisecond, func() (bool, error) {
		for ; left > 0; left-- {
			job := &batchv1.Job{}
			if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: fmt.Sprintf("%s-%d", prefix, left-1)}, job); err != nil {
				return false, err
			}
			if job.Status.CompletionTime == nil {
				return false, nil
			}
		}
		return true, nil
	})
	return time.Since(start), err
}
