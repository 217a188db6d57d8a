package cluster

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"github.com/edpm-operators/edpm-operators/test/lab/internal/binaries"
	"github.com/edpm-operators/edpm-operators/test/lab/internal/proc"
)

// KwokLabel and its value mark the nodes that KWOK plays. Take the label off a
// node and KWOK leaves it alone, as if its machine had lost its power.
const (
	kwokLabelKey   = "type"
	kwokLabelValue = "kwok"
	kwokTaintKey   = "kwok.x-k8s.io/node"
)

// kwok starts KWOK and makes sure that at least count pretend nodes exist.
func (l *Lab) kwok(ctx context.Context, o Options) error {
	healthz := healthy(fmt.Sprintf("http://127.0.0.1:%d/healthz", l.kwokPort()))
	if err := l.run(ctx, l.kwokComponent(o), healthz); err != nil {
		return err
	}
	api, err := l.api()
	if err != nil {
		return err
	}
	created, err := api.createNodes(ctx, o.KwokNodes, o.Kubelet)
	if err != nil {
		return err
	}
	if created > 0 {
		l.logf("Created %d KWOK nodes", created)
	}
	return waitFor(ctx, "KWOK nodes", func(ctx context.Context) error {
		return api.kwokNodesReady(ctx, o.KwokNodes)
	})
}

//go:embed stages/pod-recovers.yaml
var podRecovers string

// leaseDuration of KWOK's nodes, which renew their leases four times as often.
const leaseDuration = 40 * time.Second

func (l *Lab) kwokComponent(o Options) proc.Component {
	lease := leaseDuration
	if o.NodeGrace > 0 {
		lease = min(lease, o.NodeGrace)
	}
	recovers := l.path("conf", "kwok-pod-recovers.yaml")
	args := []string{
		"--kubeconfig=" + l.Kubeconfig(),
		"--manage-nodes-with-label-selector=" + kwokLabelKey + "=" + kwokLabelValue,
		// Without it KWOK makes no leases, and the nodes turn Unknown for good.
		"--node-lease-duration-seconds=" + strconv.Itoa(int(lease.Seconds())),
		"--cidr=" + kwokPodCIDR,
		"--server-address=127.0.0.1:" + strconv.Itoa(l.kwokPort()),
		"--config=" + filepath.Join(l.Bin, binaries.StagesFile),
		"--config=" + recovers,
	}
	for _, file := range o.Stages {
		args = append(args, "--config="+file)
	}
	c := l.component("kwok", l.kwokPort(), args...)
	c.Files = map[string]string{recovers: podRecovers}
	return c
}

// createNodes makes the missing ones of kwok-node-0 … kwok-node-<count-1>, and
// returns how many were missing.
func (a *apiClient) createNodes(ctx context.Context, count int, tainted bool) (int, error) {
	errs := make([]error, count)
	forEach(count, 8, func(i int) {
		errs[i] = a.do(ctx, http.MethodPost, "/api/v1/nodes", kwokNode(i, tainted), nil)
	})
	var created int
	var failures []error
	for _, err := range errs {
		switch {
		case err == nil:
			created++
		case !errors.Is(err, errExists):
			failures = append(failures, err)
		}
	}
	return created, errors.Join(failures...)
}

// kwokNode describes the i-th pretend node. Zones go round, so that spread
// constraints have something to spread over. Next to a real node it is tainted:
// a pod that must truly run would otherwise only seem to.
func kwokNode(i int, tainted bool) node {
	name := "kwok-node-" + strconv.Itoa(i)
	room := map[string]string{"cpu": "32", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "250"}
	n := node{
		APIVersion: "v1",
		Kind:       "Node",
		Metadata: metadata{
			Name: name,
			Labels: map[string]string{
				kwokLabelKey:                    kwokLabelValue,
				"kubernetes.io/hostname":        name,
				"kubernetes.io/os":              "linux",
				"kubernetes.io/arch":            "amd64",
				"topology.kubernetes.io/region": "lab",
				"topology.kubernetes.io/zone":   zone(i),
			},
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Status: nodeStatus{Capacity: room, Allocatable: room},
	}
	if tainted {
		n.Spec.Taints = []taint{{Key: kwokTaintKey, Value: "fake", Effect: "NoSchedule"}}
	}
	return n
}

func zone(i int) string { return "zone-" + string(rune('a'+i%3)) }

func (a *apiClient) kwokNodesReady(ctx context.Context, want int) error {
	var list struct {
		Items []node `json:"items"`
	}
	path := "/api/v1/nodes?labelSelector=" + kwokLabelKey + "%3D" + kwokLabelValue
	if err := a.do(ctx, http.MethodGet, path, nil, &list); err != nil {
		return err
	}
	var ready int
	for _, n := range list.Items {
		if n.ready() {
			ready++
		}
	}
	if ready < want {
		return fmt.Errorf("%d of %d KWOK nodes are Ready", ready, want)
	}
	return nil
}
