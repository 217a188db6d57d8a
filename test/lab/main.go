// Command lab runs a real Kubernetes on one Linux machine, for end-to-end tests
// and benchmarks: etcd, kube-apiserver, kube-controller-manager, kube-scheduler,
// a kubelet on its own containerd, KWOK for pretend nodes, and EDPM hosts as
// containers with systemd and sshd. Nothing is pulled from a registry.
//
//	go run ./test/lab binaries                  # build the executables; prints their directory
//	go run ./test/lab binaries olm              # the same of OLM: catalog, olm, opm
//	sudo go run ./test/lab up --hosts --kwok-nodes 20
//	sudo go run ./test/lab up --olm && go run ./test/lab catalog bin/catalog
//	sudo go run ./test/lab up --hosts --openstack && source <(go run ./test/lab openrc)
//	sudo go run ./test/lab up --hosts --ovn
//	export KUBECONFIG=$(go run ./test/lab kubeconfig)
//	sudo go run ./test/lab ssh edpm-compute-0 -- hostname
//	sudo go run ./test/lab up --vms 1 && sudo go run ./test/lab power edpm-vm-0 reset
//	sudo go run ./test/lab down
//
//	EDPM_LAB_DIR=/tmp/bench EDPM_LAB_PORT_BASE=17443 go run ./test/lab up --no-kubelet --kwok-nodes 100
//
// The lab lives in $EDPM_LAB_DIR (default /var/lib/edpm-lab): kubeconfig, logs/,
// ssh/id_ed25519, pki/. Its ports are $EDPM_LAB_PORT_BASE (default 16443, the
// apiserver) and the ten after it. Executables are cached in
// $EDPM_CACHE/bin (default $HOME/.cache/edpm-operators/bin).
//
// The real node is lab-worker-0 at 10.244.0.1, its pods are in 10.244.0.0/24.
// Pods reach the apiserver (10.96.0.1:443, as KUBERNETES_SERVICE_HOST says), the
// hosts (192.168.122.0/24) and whatever the machine reaches. The apiserver
// reaches webhooks and aggregated APIs at their pods. kube-proxy makes ClusterIPs
// work, and NodePorts at the node's address. There is no cluster DNS: pods use IP
// addresses. Images are imported, never pulled: use imagePullPolicy
// IfNotPresent or Never.
//
// KWOK nodes are kwok-node-0 and on, labelled type=kwok, in zones zone-a, zone-b
// and zone-c, and tainted kwok.x-k8s.io/node=fake:NoSchedule unless they are the
// only ones (--no-kubelet). Their pods run and their Jobs complete at once.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/edpm-operators/edpm-operators/test/lab/internal/binaries"
	"github.com/edpm-operators/edpm-operators/test/lab/internal/cluster"
	"github.com/edpm-operators/edpm-operators/test/progress"
)

const usage = `usage: lab <command>

  binaries [olm]        build etcd, the Kubernetes components and KWOK, or those of
                        OLM, which up does not need; print their directory
  up [flags]            bring the lab up, or fix it (see lab up -h)
  down                  stop and remove what up made
  status                show what runs
  kubeconfig            print the path of the admin's kubeconfig
  load TAR...           import docker archives for pods
  openrc                print what the program openstack needs of a lab with --openstack or --ovn
  virt-type             print how guests run on this machine: kvm, or qemu without it
  catalog DIR           serve a file-based catalog, and no other, for OLM; up --olm first
  ssh [USER@]HOST [-- COMMAND...]
  power HOST on|off|reset
                        turn the power of a virtual machine on or off; up --vms makes them
`

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

var commands = map[string]func(context.Context, []string) error{
	"binaries":   printBinaries,
	"up":         up,
	"down":       withLab(func(ctx context.Context, lab *cluster.Lab, _ []string) error { return lab.Down(ctx) }),
	"status":     withLab(func(ctx context.Context, lab *cluster.Lab, _ []string) error { return lab.Status(ctx, os.Stdout) }),
	"kubeconfig": withLab(printKubeconfig),
	"load":       withLab(func(ctx context.Context, lab *cluster.Lab, args []string) error { return lab.Load(ctx, args) }),
	"openrc":     printText(cluster.OpenRC),
	"virt-type":  printText(cluster.VirtType),
	"catalog":    withLab(serveCatalog),
	"ssh":        withLab(ssh),
	"power":      withLab(power),
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	command, ok := commands[args[0]]
	if !ok {
		return fmt.Errorf("no command %q\n%s", args[0], usage)
	}
	return command(ctx, args[1:])
}

func printBinaries(ctx context.Context, args []string) error {
	set := binaries.Kubernetes()
	switch {
	case len(args) == 1 && args[0] == "olm":
		set = binaries.OLM()
	case len(args) > 0:
		return fmt.Errorf("binaries takes no argument %q: leave it out, or say olm", strings.Join(args, " "))
	}
	dir, err := showBinaries(ctx, set)
	if err == nil {
		fmt.Println(dir)
	}
	return err
}

// showBinaries builds the executables, or finds them built, and shows how far it is.
func showBinaries(ctx context.Context, set binaries.Set) (string, error) {
	b, err := builder()
	if err != nil {
		return "", err
	}
	dir, built, err := b.Find(set)
	if err != nil || built {
		return dir, err
	}
	return dir, progress.New("lab binaries").Run(ctx, []progress.Step{{
		Name: set.Title, Run: func(ctx context.Context, _ io.Writer) error { _, err := b.Ensure(ctx, set); return err },
	}})
}

func up(ctx context.Context, args []string) error {
	o, err := parseUp(args)
	if err != nil {
		return err
	}
	lab, err := cluster.FromEnvironment()
	if err != nil {
		return err
	}
	lab.Executables = ensureBinaries
	return lab.Up(ctx, o)
}

// maxVMs is how many virtual machines have an address.
const maxVMs = 50

func parseUp(args []string) (cluster.Options, error) {
	var o cluster.Options
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	noKubelet := flags.Bool("no-kubelet", false, "no real node, so no root: control plane and KWOK nodes only")
	hosts := flags.Bool("hosts", false, "the default EDPM hosts: edpm-compute-0, edpm-compute-1, edpm-storage-0")
	flags.Func("host", "one more EDPM `name=ip` in 192.168.122.0/24 (repeatable)", func(s string) error {
		host, err := cluster.ParseHost(s)
		o.Hosts = append(o.Hosts, host)
		return err
	})
	vms := flags.Int("vms", 0, "`number` of EDPM hosts that are virtual machines: edpm-vm-0 and on, from 192.168.122.150")
	flags.IntVar(&o.KwokNodes, "kwok-nodes", 0, "make sure that so many KWOK nodes exist")
	flags.Func("stages", "`file` of further KWOK stages (repeatable)", appendPath(&o.Stages))
	flags.DurationVar(&o.NodeGrace, "node-grace", 0, "nodes are NotReady after this `time` without a sign of life, 8s or more (default 50s)")
	flags.DurationVar(&o.EvictionGrace, "eviction-grace", 0, "pods are evicted from a lost node after this `time` more, 1s or more (default 5m)")
	flags.BoolVar(&o.OLM, "olm", false, "the Operator Lifecycle Manager; see lab catalog")
	flags.BoolVar(&o.Machines, "machines", false, "what go run ./test/lab/metal needs to boot machines")
	flags.BoolVar(&o.OpenStack, "openstack", false, "edpm-controller-0, with what nova shares with others, and the images for a Nova; see lab openrc")
	flags.BoolVar(&o.OVN, "ovn", false, "edpm-controller-0, with neutron and OVN as well, and the image of OVN's agents for hosts; see lab openrc")
	flags.BoolVar(&o.Audit, "audit", false, "log what ServiceAccounts ask of the API server, in logs/audit*.log, 300 MB at most")
	images := flags.String("images", "ansibleee", "comma-separated `names` of test/lab/images to import for pods, besides pause")
	flags.Func("archive", "docker archive `file` to import for pods (repeatable)", appendPath(&o.Archives))
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("up takes no argument %q", flags.Arg(0))
	}
	if o.NodeGrace != 0 && o.NodeGrace < 8*time.Second || o.EvictionGrace != 0 && o.EvictionGrace < time.Second {
		return o, fmt.Errorf("--node-grace %s, --eviction-grace %s: give at least 8s and 1s, or leave them out", o.NodeGrace, o.EvictionGrace)
	}
	if *vms < 0 || *vms > maxVMs {
		return o, fmt.Errorf("--vms %d: give 0 to %d", *vms, maxVMs)
	}
	o.VMs = cluster.VMs(*vms)
	o.Kubelet = !*noKubelet
	o.Images = strings.FieldsFunc(*images, func(r rune) bool { return r == ',' })
	if o.OpenStack {
		o.Images = append(o.Images, "nova")
	}
	if *hosts {
		o.Hosts = append(cluster.DefaultHosts(), o.Hosts...)
	}
	return o, nil
}

// appendPath makes paths absolute: the processes that read them run elsewhere.
func appendPath(list *[]string) func(string) error {
	return func(s string) error {
		path, err := filepath.Abs(s)
		*list = append(*list, path)
		return err
	}
}

func printKubeconfig(_ context.Context, lab *cluster.Lab, _ []string) error {
	fmt.Println(lab.Kubeconfig())
	return nil
}

func printText(text func() string) func(context.Context, []string) error {
	return func(context.Context, []string) error {
		fmt.Println(text())
		return nil
	}
}

// serveCatalog prints the address for the CatalogSource.
func serveCatalog(ctx context.Context, lab *cluster.Lab, args []string) error {
	if len(args) != 1 {
		return errors.New("catalog needs the directory of one: lab catalog bin/catalog")
	}
	var err error
	if lab.OLM, err = ensureBinaries(ctx, binaries.OLM()); err != nil {
		return err
	}
	address, err := lab.Catalog(ctx, args[0])
	if err == nil {
		fmt.Println(address)
	}
	return err
}

// ssh becomes the ssh program, so that terminals and exit codes just work.
func ssh(ctx context.Context, lab *cluster.Lab, args []string) error {
	if len(args) == 0 {
		return errors.New("ssh needs a host: lab ssh edpm-compute-0 -- hostname")
	}
	rest := args[1:]
	if len(rest) > 0 && rest[0] == "--" {
		rest = rest[1:]
	}
	argv, err := lab.SSHCommand(ctx, args[0], rest)
	if err != nil {
		return err
	}
	return syscall.Exec(argv[0], argv, os.Environ())
}

func power(ctx context.Context, lab *cluster.Lab, args []string) error {
	if len(args) != 2 {
		return errors.New("power needs a host and a state: lab power edpm-vm-0 off")
	}
	return lab.Power(ctx, args[0], args[1])
}

func withLab(f func(context.Context, *cluster.Lab, []string) error) func(context.Context, []string) error {
	return func(ctx context.Context, args []string) error {
		lab, err := cluster.FromEnvironment()
		if err != nil {
			return err
		}
		return f(ctx, lab, args)
	}
}

func ensureBinaries(ctx context.Context, set binaries.Set) (string, error) {
	b, err := builder()
	if err != nil {
		return "", err
	}
	return b.Ensure(ctx, set)
}

func builder() (*binaries.Builder, error) {
	source, err := cluster.SourceDir()
	if err != nil {
		return nil, err
	}
	cache, err := progress.CacheDir()
	return &binaries.Builder{Source: filepath.Join(source, "binaries"), Cache: filepath.Join(cache, "bin")}, err
}
