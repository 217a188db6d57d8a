package cluster

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"reflect"
	"strconv"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/edpm-operators/edpm-operators/test/lab/internal/pki"
	"github.com/edpm-operators/edpm-operators/test/lab/internal/proc"
)

// certificates makes every key of the lab, and the admin's kubeconfig.
func (l *Lab) certificates() error {
	frontProxy, err := pki.Open(l.pkiDir(), "front-proxy-ca")
	if err != nil {
		return err
	}
	if err := frontProxy.Issue(pki.Request{File: "front-proxy", CommonName: "front-proxy"}); err != nil {
		return err
	}
	ca, err := pki.Open(l.pkiDir(), "ca")
	if err != nil {
		return err
	}
	for _, r := range certificateRequests() {
		if err := ca.Issue(r); err != nil {
			return err
		}
	}
	if err := ca.KeyPair("service-account"); err != nil {
		return err
	}
	return l.adminKubeconfig()
}

// adminKubeconfig makes the admin's kubeconfig, unless what is there leads to this
// cluster already: its owner may have chosen a namespace in it.
func (l *Lab) adminKubeconfig() error {
	text, err := l.kubeconfigFor("admin")
	if err != nil {
		return err
	}
	want, err := clientcmd.Load([]byte(text))
	if err != nil {
		return fmt.Errorf("reading the kubeconfig that was made: %w", err)
	}
	if old, err := os.ReadFile(l.Kubeconfig()); err == nil {
		have, err := clientcmd.Load(old)
		if err == nil && reflect.DeepEqual(have.Clusters, want.Clusters) && reflect.DeepEqual(have.AuthInfos, want.AuthInfos) {
			return nil
		}
	}
	return os.WriteFile(l.Kubeconfig(), []byte(text), 0o600)
}

func certificateRequests() []pki.Request {
	return []pki.Request{
		{File: "admin", CommonName: "lab-admin", Groups: []string{"system:masters"}},
		{File: "controller-manager", CommonName: "system:kube-controller-manager"},
		{File: "scheduler", CommonName: "system:kube-scheduler"},
		{File: "apiserver-kubelet-client", CommonName: "lab-apiserver", Groups: []string{"system:masters"}},
		{File: "apiserver", CommonName: "kube-apiserver", Hosts: []string{
			"127.0.0.1", apiServiceIP, nodeIP, "localhost",
			"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		}},
		{File: "kubelet", CommonName: "system:node:" + NodeName, Groups: []string{"system:nodes"},
			Hosts: []string{NodeName, nodeIP, "127.0.0.1"}},
		{File: "kube-proxy", CommonName: "system:kube-proxy"},
	}
}

// kubeconfigFor returns a kubeconfig with the certificates inside, so that a
// copy of the file works elsewhere on this machine.
func (l *Lab) kubeconfigFor(user string) (string, error) {
	data := map[string]string{"Server": l.apiURL()}
	for key, file := range map[string]string{"CA": "ca.crt", "Cert": user + ".crt", "Key": user + ".key"} {
		content, err := os.ReadFile(l.path("pki", file))
		if err != nil {
			return "", err
		}
		data[key] = base64.StdEncoding.EncodeToString(content)
	}
	return render("kubeconfig.yaml", data), nil
}

// controlPlane starts etcd, the apiserver, and what needs the apiserver.
func (l *Lab) controlPlane(ctx context.Context, o Options) error {
	etcd := fmt.Sprintf("http://127.0.0.1:%d/readyz", l.etcdPort())
	if err := l.run(ctx, l.etcd(), healthy(etcd)); err != nil {
		return err
	}
	if err := l.run(ctx, l.apiserver(o), healthy(l.apiURL()+"/readyz")); err != nil {
		return err
	}
	managers, err := l.managers(o)
	if err != nil {
		return err
	}
	var starts []func() error
	for _, c := range managers {
		probe := healthy(fmt.Sprintf("https://127.0.0.1:%d/healthz", c.Port))
		starts = append(starts, func() error { return l.run(ctx, c, probe) })
	}
	return parallel(starts...)
}

func (l *Lab) etcd() proc.Component {
	client := "http://127.0.0.1:" + strconv.Itoa(l.etcdPort())
	peer := "http://127.0.0.1:" + strconv.Itoa(l.etcdPeerPort())
	return l.component("etcd", l.etcdPort(),
		"--data-dir="+l.path("etcd"),
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer,
		"--initial-cluster=default="+peer,
		"--unsafe-no-fsync", // a lab's data need not survive a power cut
		"--quota-backend-bytes=4294967296",
		"--log-level=warn",
	)
}

// apiserver serves pods and webhooks only where there is a real node; without
// one it stays on loopback, and no one needs its address from the Endpoints.
func (l *Lab) apiserver(o Options) proc.Component {
	key := func(file string) string { return l.path("pki", file) }
	args := []string{
		"--etcd-servers=http://127.0.0.1:" + strconv.Itoa(l.etcdPort()),
		"--secure-port=" + strconv.Itoa(l.apiPort()),
		"--service-cluster-ip-range=" + serviceCIDR,
		"--tls-cert-file=" + key("apiserver.crt"), "--tls-private-key-file=" + key("apiserver.key"),
		"--client-ca-file=" + key("ca.crt"),
		"--kubelet-certificate-authority=" + key("ca.crt"),
		"--kubelet-client-certificate=" + key("apiserver-kubelet-client.crt"),
		"--kubelet-client-key=" + key("apiserver-kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + key("service-account.pub"),
		"--service-account-signing-key-file=" + key("service-account.key"),
		"--requestheader-client-ca-file=" + key("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + key("front-proxy.crt"), "--proxy-client-key-file=" + key("front-proxy.key"),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		// Webhooks and aggregated APIs are reached at their pods: without a kubelet
		// there is no kube-proxy, which makes ClusterIPs work.
		"--enable-aggregator-routing=true",
		"--profiling=false",
	}
	if o.Kubelet {
		args = append(args, "--bind-address=0.0.0.0", "--advertise-address="+nodeIP)
	} else {
		args = append(args, "--bind-address=127.0.0.1", "--endpoint-reconciler-type=none")
	}
	if o.EvictionGrace > 0 {
		seconds := strconv.Itoa(int(o.EvictionGrace.Seconds()))
		args = append(args, "--default-not-ready-toleration-seconds="+seconds, "--default-unreachable-toleration-seconds="+seconds)
	}
	c := l.component("kube-apiserver", l.apiPort(), args...)
	if o.Audit {
		policy := l.path("conf", "audit.yaml")
		c.Files = map[string]string{policy: render("audit.yaml", nil)}
		c.Argv = append(c.Argv, "--audit-policy-file="+policy, "--audit-log-path="+l.path("logs", "audit.log"),
			"--audit-log-maxsize=100", "--audit-log-maxbackup=2") // megabytes, and older files
	}
	return c
}

func (l *Lab) managers(o Options) ([]proc.Component, error) {
	controllers, err := l.kubeconfigFor("controller-manager")
	if err != nil {
		return nil, err
	}
	scheduler, err := l.kubeconfigFor("scheduler")
	if err != nil {
		return nil, err
	}
	return []proc.Component{l.controllerManager(o, controllers), l.scheduler(scheduler)}, nil
}

func (l *Lab) controllerManager(o Options, kubeconfig string) proc.Component {
	path := l.path("conf", "controller-manager.kubeconfig")
	c := l.component("kube-controller-manager", l.controllersPort(),
		"--kubeconfig="+path, "--authentication-kubeconfig="+path, "--authorization-kubeconfig="+path,
		"--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(l.controllersPort()),
		"--root-ca-file="+l.path("pki", "ca.crt"),
		"--service-account-private-key-file="+l.path("pki", "service-account.key"),
		"--cluster-signing-cert-file="+l.path("pki", "ca.crt"),
		"--cluster-signing-key-file="+l.path("pki", "ca.key"),
		"--use-service-account-credentials",
		"--leader-elect=false",
		"--kube-api-qps=300", "--kube-api-burst=600", // benches measure operators, not this
	)
	if o.NodeGrace > 0 {
		c.Argv = append(c.Argv, "--node-monitor-grace-period="+o.NodeGrace.String(), "--node-monitor-period="+(o.NodeGrace/8).String())
	}
	c.Files = map[string]string{path: kubeconfig}
	return c
}

func (l *Lab) scheduler(kubeconfig string) proc.Component {
	path := l.path("conf", "scheduler.kubeconfig")
	config := l.path("conf", "scheduler.yaml")
	c := l.component("kube-scheduler", l.schedulerPort(),
		"--config="+config, "--authentication-kubeconfig="+path, "--authorization-kubeconfig="+path,
		"--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(l.schedulerPort()),
	)
	c.Files = map[string]string{
		path:   kubeconfig,
		config: render("scheduler.yaml", map[string]string{"Kubeconfig": path}),
	}
	return c
}
