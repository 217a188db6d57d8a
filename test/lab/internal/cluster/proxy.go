package cluster

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/edpm-operators/edpm-operators/test/lab/internal/proc"
)

// proxyTable is the table of kube-proxy in nftables, of the families ip and ip6.
const proxyTable = "kube-proxy"

// proxy makes the addresses and node ports of Services work.
func (l *Lab) proxy(ctx context.Context) error {
	kubeconfig, err := l.kubeconfigFor("kube-proxy")
	if err != nil {
		return err
	}
	return l.run(ctx, l.proxyComponent(kubeconfig), healthy(fmt.Sprintf("http://127.0.0.1:%d/livez", l.proxyHealthzPort())))
}

func (l *Lab) proxyComponent(kubeconfig string) proc.Component {
	config, credentials := l.path("conf", "kube-proxy.yaml"), l.path("conf", "kube-proxy.kubeconfig")
	c := l.component("kube-proxy", l.proxyHealthzPort(), "--config="+config)
	c.Files = map[string]string{
		credentials: kubeconfig,
		config: render("kube-proxy.yaml", map[string]string{
			"Kubeconfig": credentials, "Node": NodeName, "PodCIDR": podCIDR,
			"HealthzPort": strconv.Itoa(l.proxyHealthzPort()), "MetricsPort": strconv.Itoa(l.proxyMetricsPort()),
		}),
	}
	return c
}

// removeProxyTables deletes what kube-proxy made. Its name is fixed, so it is left
// alone where another lab has the bridge.
func (l *Lab) removeProxyTables(ctx context.Context) error {
	if _, err := exec.LookPath("nft"); err != nil {
		return nil
	}
	tables, err := command(ctx, "nft", "list", "tables")
	if err != nil {
		return err
	}
	for line := range strings.Lines(tables) {
		fields := strings.Fields(line) // table ip kube-proxy
		if len(fields) != 3 || fields[2] != proxyTable {
			continue
		}
		if _, err := command(ctx, "nft", append([]string{"delete"}, fields...)...); err != nil {
			return err
		}
	}
	return nil
}
