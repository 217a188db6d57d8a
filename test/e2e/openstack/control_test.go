package openstack

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
)

// controlStories have nova's own services in pods.
func controlStories() {
	It("become Ready in order, and report to nova", func(ctx SpecContext) {
		describeNova(ctx)
		Eventually(expect.Read(ctx, k8s, nova())).WithTimeout(12 * time.Minute).Should(expect.Ready())
		Eventually(hostsOfServices).WithArguments(ctx, "nova-conductor").WithTimeout(time.Minute).Should(Equal(map[string]string{
			"nova-cell0-conductor-0": "up", "nova-cell1-conductor-0": "up", "nova-cell2-conductor-0": "up",
		}))
		Eventually(hostsOfServices).WithArguments(ctx, "nova-scheduler").WithTimeout(time.Minute).Should(Equal(map[string]string{"nova-scheduler-0": "up"}))
	}, SpecTimeout(15*time.Minute))

	It("know each cell by its own message bus and database", func(ctx SpecContext) {
		cells := novaManage(ctx, "cell_v2", "list_cells")
		for _, row := range []string{
			`cell0 +\| +\S+ +\| +none:/+ +\| +\S+@192.168.122.10/nova_cell0`,
			`cell1 +\| +\S+ +\| +rabbit://nova:\*+@192.168.122.10:5672/cell1 +\| +\S+@192.168.122.10/nova_cell1`,
			`cell2 +\| +\S+ +\| +rabbit://nova:\*+@192.168.122.10:5672/cell2 +\| +\S+@192.168.122.10/nova_cell2`,
		} {
			Expect(cells).To(MatchRegexp(row))
		}
	}, SpecTimeout(time.Minute))

	It("answer through a metadata service and a console proxy with their certificate", func(ctx SpecContext) {
		Expect(fetch(ctx, "nova-cell1-metadata", "/")).To(ContainSubstring("latest"))
		Expect(fetch(ctx, "nova-cell1-novncproxy", "/vnc_lite.html")).To(ContainSubstring("noVNC"))
	}, SpecTimeout(time.Minute))
}

// rolloutStories have services that are replaced while a guest runs.
func rolloutStories() {
	It("heals a conductor whose pod dies, and its computes stay", func(ctx SpecContext) {
		pod := &corev1.Pod{ObjectMeta: named("nova-cell1-conductor-0")}
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
		before := pod.UID
		Expect(k8s.Delete(ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
		Eventually(func() (bool, error) {
			err := k8s.Get(ctx, client.ObjectKeyFromObject(pod), pod)
			return err == nil && pod.UID != before && ready(pod), client.IgnoreNotFound(err)
		}).WithTimeout(3 * time.Minute).Should(BeTrue())
		Eventually(expect.Read(ctx, k8s, nova())).WithTimeout(time.Minute).Should(expect.Ready())
		By("reporting through it")
		openstack(ctx, "server", "stop", guest)
		Eventually(statusOfGuest).WithArguments(ctx).WithTimeout(2 * time.Minute).Should(Equal("SHUTOFF"))
		openstack(ctx, "server", "start", guest)
		Eventually(statusOfGuest).WithArguments(ctx).WithTimeout(2 * time.Minute).Should(Equal("ACTIVE"))
		Eventually(hostsOfServices).WithArguments(ctx, "nova-compute").WithTimeout(time.Minute).Should(HaveKeyWithValue(compute.Name, "up"))
	}, SpecTimeout(8*time.Minute))

	It("rolls a changed configuration of the API out without a request that fails", func(ctx SpecContext) {
		Expect(limit(ctx, "maxTotalInstances")).To(BeNumerically("==", 10), "nova's default")
		failed := watchAPI(ctx)
		obj := nova()
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
		before := obj.DeepCopy()
		obj.Spec.APIServiceTemplate.CustomServiceConfig = "[quota]\ninstances = 3\n"
		Expect(k8s.Patch(ctx, obj, client.MergeFrom(before))).To(Succeed())
		Eventually(limit).WithArguments(ctx, "maxTotalInstances").WithTimeout(4 * time.Minute).Should(BeNumerically("==", 3))
		Eventually(expect.Read(ctx, k8s, nova())).WithTimeout(4 * time.Minute).Should(expect.Ready())
		Expect(failed()).To(BeEmpty())
	}, SpecTimeout(10*time.Minute))
}

// novaManage runs nova-manage with the configuration of the API.
func novaManage(ctx context.Context, args ...string) string {
	GinkgoHelper()
	out, err := cluster.Kubectl(ctx, append([]string{"-n", namespace, "exec", "nova-api-0", "--", "nova-manage", "--config-dir", "/etc/nova/nova.conf.d"}, args...)...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// fetch reads from a Service of the namespace that has TLS.
func fetch(ctx context.Context, service, path string) (string, error) {
	obj := &corev1.Service{ObjectMeta: named(service)}
	if err := k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		return "", err
	}
	return request(ctx, "https://"+obj.Spec.ClusterIP+":"+strconv.Itoa(int(obj.Spec.Ports[0].Port))+path)
}

// request asks on a connection of its own.
func request(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := web().Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// watchAPI asks the API all the time until the function that it returns is called,
// which returns the first request that failed, and how many did.
func watchAPI(ctx context.Context) func() []string {
	var failures []string
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			if body, err := request(ctx, apiURL); err != nil {
				failures = append(failures, err.Error())
			} else if !strings.Contains(body, `"versions"`) {
				failures = append(failures, body)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	return func() []string {
		stop.Store(true)
		<-done
		return failures
	}
}

// limit is one of the project.
func limit(ctx context.Context, name string) (int, error) {
	out, err := cluster.OpenStack(ctx, "limits", "show", "--absolute", "--format", "json")
	if err != nil {
		return 0, err
	}
	var limits []struct {
		Name  string
		Value int
	}
	err = json.Unmarshal([]byte(out), &limits)
	for _, l := range limits {
		if l.Name == name {
			return l.Value, err
		}
	}
	return 0, err
}

func statusOfGuest(ctx context.Context) (string, error) {
	return cluster.OpenStack(ctx, "server", "show", guest, "--format", "value", "--column", "status")
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
