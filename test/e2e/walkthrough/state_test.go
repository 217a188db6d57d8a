package walkthrough

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
)

// read returns an object as it is now.
func read[T client.Object](ctx context.Context, ns, name string, obj T) T {
	GinkgoHelper()
	Expect(cluster.Client.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, obj)).To(Succeed())
	return obj
}

func node(ctx context.Context, name string) *dataplanev1.OpenStackDataPlaneNode {
	GinkgoHelper()
	return read(ctx, namespace, name, &dataplanev1.OpenStackDataPlaneNode{})
}

func compute(ctx context.Context, name string) *novav1.NovaExternalCompute {
	GinkgoHelper()
	return read(ctx, namespace, name, &novav1.NovaExternalCompute{})
}

func managerImage(ctx context.Context) string {
	GinkgoHelper()
	return read(ctx, systemNS, "edpm-operators-manager", &appsv1.Deployment{}).Spec.Template.Spec.Containers[0].Image
}

// managerPod returns the newest pod of the manager.
func managerPod(ctx context.Context) corev1.Pod {
	GinkgoHelper()
	pods := &corev1.PodList{}
	Expect(cluster.Client.List(ctx, pods, client.InNamespace(systemNS), client.MatchingLabels{"app.kubernetes.io/component": "manager"})).To(Succeed())
	Expect(pods.Items).NotTo(BeEmpty())
	return slices.MaxFunc(pods.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
}

// leader returns who holds the lease of the manager.
func leader(ctx context.Context) (string, error) {
	lease := &coordinationv1.Lease{}
	err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: systemNS, Name: "edpm-operators"}, lease)
	return ptr.Deref(lease.Spec.HolderIdentity, ""), err
}

// allSteps are those of a compute in their order.
func allSteps() []string {
	return append(slices.Clone(dataplanev1.DefaultServices), "libvirt-tls", "libvirt", "nova", "live-migration")
}

// once is the trail of steps that went well, one after the other.
func once(steps ...string) []string {
	var trail []string
	for _, s := range steps {
		trail = append(trail, "start "+s, "end "+s)
	}
	return trail
}

// noted returns what the runs noted on a host, as "<event> <step>".
func noted(ctx context.Context, host lab.Host) []string {
	GinkgoHelper()
	runs, err := host.Runs(ctx)
	Expect(err).NotTo(HaveOccurred())
	var trail []string
	for _, r := range runs {
		trail = append(trail, r.Event+" "+r.Step)
	}
	return trail
}

// novaState returns what systemd says of nova-compute on a host.
func novaState(ctx context.Context, host lab.Host) string {
	GinkgoHelper()
	out, err := host.Console(ctx, "systemctl is-active edpm_nova_compute.service; true")
	Expect(err).NotTo(HaveOccurred())
	return out
}

// guestOn is the process of the guest on a host, with its start time.
func guestOn(ctx context.Context, host lab.Host) string {
	GinkgoHelper()
	out, err := host.Console(ctx, "ps -o pid=,lstart= -p $(pgrep -f '[q]emu-system.*guest=')")
	Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(out)
}

// remains lists what is on a host of the services of a compute.
const remains = `cd /etc/systemd/system; ls -d edpm_*.service 2>/dev/null
podman ps --all --format '{{.Names}}' | grep ^edpm_
ls -d /var/lib/openstack/nova /var/lib/openstack/libvirt 2>/dev/null
pgrep -a nova-compute
true`

// runsAcross returns the names of the runs that were under way when a pod came.
func runsAcross(ctx context.Context, pod corev1.Pod) []string {
	GinkgoHelper()
	runs := &ansibleeev1.OpenStackAnsibleEEList{}
	Expect(cluster.Client.List(ctx, runs, client.InNamespace(namespace))).To(Succeed())
	var names []string
	for _, r := range runs.Items {
		end := r.Status.CompletionTime
		if r.CreationTimestamp.Before(&pod.CreationTimestamp) && end != nil && pod.CreationTimestamp.Before(end) {
			names = append(names, r.Name)
		}
	}
	return names
}

// secretValues are what must not be shown: the values of the user's Secrets.
func secretValues(ctx context.Context) []string {
	GinkgoHelper()
	secrets := &corev1.SecretList{}
	Expect(cluster.Client.List(ctx, secrets, client.InNamespace(namespace))).To(Succeed())
	var values []string
	for _, s := range secrets.Items {
		for key, value := range s.Data {
			switch key {
			case "NovaPassword", "ServicePassword":
				values = append(values, string(value))
			case "transport_url":
				_, password, _ := strings.Cut(string(value), "nova:")
				password, _, _ = strings.Cut(password, "@")
				values = append(values, password)
			case "ssh-privatekey":
				values = append(values, strings.Split(string(value), "\n")[3]) // those before are the same in all keys
			}
		}
	}
	return values
}

// archive is what the page has must-gather write.
const archive = "problem.tar.gz"

// searchArchive looks for secrets in the archive that the page has made, and
// returns how many files it has.
func searchArchive(ctx context.Context) int {
	GinkgoHelper()
	values := secretValues(ctx)
	Expect(len(values)).To(BeNumerically(">=", 4), "of the page")
	file, err := os.Open(filepath.Join(cluster.Root, "bin", archive))
	Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	Expect(err).NotTo(HaveOccurred())
	files := 0
	for reader := tar.NewReader(unzipped); ; files++ {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		Expect(err).NotTo(HaveOccurred())
		text, err := io.ReadAll(reader)
		Expect(err).NotTo(HaveOccurred())
		for _, v := range values {
			Expect(string(text)).NotTo(Or(ContainSubstring(v), ContainSubstring(base64.StdEncoding.EncodeToString([]byte(v)))), header.Name)
		}
	}
}
