package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/test/envtest"
)

const (
	// foreignVariable is how many ConfigMaps TestConfigMapsOfOthersCostNoMemory
	// makes, if it is set. docs/performance.md has the figures for 1500.
	foreignVariable = "EDPM_FOREIGN_CONFIGMAPS"
	foreignSize     = 900 << 10
	// foreignCost is the most that one may cost: 10 MiB for 1500.
	foreignCost = (10 << 20) / 1500
	// noise is how much two managers differ that do the same, such as by the buffer
	// of a connection, and of the events of each watch. Their content would be 54 MiB.
	noise = 5 << 20
)

// memory of a manager that has filled its caches: live objects, and the most that
// it ever had of the machine.
type memory struct{ heap, peak int }

var (
	heapAlloc = regexp.MustCompile(`# HeapAlloc = (\d+)`)
	peakSize  = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)
)

func number(t *testing.T, text string, pattern *regexp.Regexp) int {
	t.Helper()
	found := pattern.FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("nothing matches %s", pattern)
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// memoryOf starts a manager, and stops it when its caches are full.
func memoryOf(t *testing.T, env *envtest.Env) memory {
	t.Helper()
	port := freePort(t)
	p := launch(t, env, "manager-0", fmt.Sprintf("--pprof-bind-address=127.0.0.1:%d", port))
	p.eventually(func() string { return p.idle() })
	answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/debug/pprof/heap?gc=1&debug=1", port))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	profile, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.ends()
	return memory{heap: number(t, string(profile), heapAlloc), peak: number(t, string(status), peakSize) << 10}
}

func makeForeign(t *testing.T, env *envtest.Env, n int) {
	t.Helper()
	config := rest.CopyConfig(env.Config)
	config.QPS = -1
	api, err := client.New(config, client.Options{Scheme: env.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}}); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := api.DeleteAllOf(context.Background(), &corev1.ConfigMap{}, client.InNamespace("foreign")); err != nil {
			t.Error(err)
		}
	})
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := worker; i < n; i += 4 {
				cm := &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{
						Namespace: "foreign", Name: fmt.Sprint("c", i),
						Annotations: map[string]string{"note": strings.Repeat("a", 100<<10)}, Labels: map[string]string{"l": "v"},
					},
					Data: map[string]string{"k": strings.Repeat("x", foreignSize-100<<10)},
				}
				if err := api.Create(t.Context(), cm); err != nil {
					t.Errorf("creating ConfigMap %d: %v", i, err)
				}
			}
		})
	}
	all.Wait()
}

func TestConfigMapsOfOthersCostNoMemory(t *testing.T) {
	n := 60
	if text := os.Getenv(foreignVariable); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	env := cluster(t)
	before := memoryOf(t, env)
	makeForeign(t, env, n)
	after := memoryOf(t, env)
	t.Logf("%d ConfigMaps of %d KiB: heap %.1f -> %.1f MiB, peak %.1f -> %.1f MiB", n, foreignSize>>10,
		mib(before.heap), mib(after.heap), mib(before.peak), mib(after.peak))
	if grown, most := after.heap-before.heap, max(n*foreignCost, noise); grown > most {
		t.Errorf("the heap has grown by %.1f MiB; at most %.1f MiB are allowed", mib(grown), mib(most))
	}
}

func mib(bytes int) float64 { return float64(bytes) / (1 << 20) }
