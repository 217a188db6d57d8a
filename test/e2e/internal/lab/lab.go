// Package lab is how the end-to-end tests reach the lab of test/lab: its
// cluster, its hosts by ssh, and their consoles.
package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/test/envtest"
)

// Lab is a running lab.
type Lab struct {
	// Root of the repository.
	Root string
	// Kubeconfig of the administrator.
	Kubeconfig string
	Config     *rest.Config
	// Client reads and writes without a cache, as the administrator.
	Client client.Client

	program, kubectl, key string

	mu   sync.Mutex
	pids map[string]string // of the first processes of the hosts
}

// Host is an EDPM host.
type Host struct {
	Name, IP string
	// vm is true of a virtual machine, and false of a container.
	vm  bool
	lab *Lab
}

// New returns the lab of the repository at root. It starts nothing: see Up.
func New(ctx context.Context, root, dir string) (*Lab, error) {
	l := &Lab{Root: root, program: filepath.Join(dir, "lab"), pids: map[string]string{}}
	if _, err := l.Run(ctx, "go", "build", "-o", l.program, "./test/lab"); err != nil {
		return nil, err
	}
	binaries, err := l.Run(ctx, l.program, "binaries")
	if err != nil {
		return nil, err
	}
	l.kubectl = filepath.Join(lastLine(binaries), "kubectl")
	if l.Kubeconfig, err = l.Run(ctx, l.program, "kubeconfig"); err != nil {
		return nil, err
	}
	l.key = filepath.Join(filepath.Dir(l.Kubeconfig), "ssh", "id_ed25519")
	return l, nil
}

// Up brings the lab up, or fixes it, with further hosts next to the default
// ones, and connects to its cluster.
func (l *Lab) Up(ctx context.Context, progress io.Writer, more ...Host) error {
	return l.UpWith(ctx, progress, append([]string{"--audit", "--hosts", "--images", "ansibleee,glance"}, HostFlags(more...)...)...)
}

// HostFlags are the flags of "lab up" that have it run these hosts.
func HostFlags(hosts ...Host) []string {
	var flags []string
	vms := 0
	for _, h := range hosts {
		if h.vm {
			vms++
			continue
		}
		flags = append(flags, "--host", h.Name+"="+h.IP)
	}
	if vms > 0 {
		flags = append(flags, "--vms", strconv.Itoa(vms))
	}
	return flags
}

// UpWith is Up with the flags of "lab up".
func (l *Lab) UpWith(ctx context.Context, progress io.Writer, flags ...string) error {
	l.forgetHosts()
	cmd := exec.CommandContext(ctx, l.program, append([]string{"up"}, flags...)...)
	var said bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = l.Root, progress, io.MultiWriter(progress, &said)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("bringing the lab up: %w: %s", err, failure(said.String()))
	}
	return l.Connect()
}

// forgetHosts forgets the processes of hosts, which may be others when they are brought up.
func (l *Lab) forgetHosts() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.pids)
}

// failure is what the program of the lab said of its failure, after what it did.
func failure(said string) string {
	return strings.TrimSpace(said[max(0, strings.LastIndex(said, "\nlab: ")):])
}

// Connect connects to the cluster of a lab that is up.
func (l *Lab) Connect() error {
	scheme, err := envtest.NewScheme()
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", l.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	l.Config = config
	l.Client, err = client.New(config, client.Options{Scheme: scheme})
	return err
}

// Down stops the lab and removes what it made.
func (l *Lab) Down(ctx context.Context) error {
	_, err := l.Run(ctx, l.program, "down")
	return err
}

// Catalog serves a file-based catalog for OLM instead of the one that is served,
// and returns the address of it.
func (l *Lab) Catalog(ctx context.Context, dir string) (string, error) {
	return l.Run(ctx, l.program, "catalog", dir)
}

// Load makes the images of docker archives known to pods.
func (l *Lab) Load(ctx context.Context, archives ...string) error {
	_, err := l.Run(ctx, l.program, append([]string{"load"}, archives...)...)
	return err
}

// OpenStack runs the program openstack as the administrator of the controller's
// OpenStack.
func (l *Lab) OpenStack(ctx context.Context, args ...string) (string, error) {
	const script = `source <("$0" openrc) && PYTHONWARNINGS=ignore exec openstack "$@"`
	return l.Run(ctx, "bash", append([]string{"-c", script, l.program}, args...)...)
}

// VirtType is how guests run on this machine: kvm or qemu.
func (l *Lab) VirtType(ctx context.Context) (string, error) {
	return l.Run(ctx, l.program, "virt-type")
}

// Log is the file with the log of a component.
func (l *Lab) Log(component string) string {
	return filepath.Join(filepath.Dir(l.Kubeconfig), "logs", component+".log")
}

// PodLogs is the directory with the logs of pods, by namespace, pod and container.
func (l *Lab) PodLogs() string { return filepath.Join(filepath.Dir(l.Kubeconfig), "pod-logs") }

// AuditLogs are the files with what ServiceAccounts asked of the API server, which
// "lab up --audit" writes.
func (l *Lab) AuditLogs() ([]string, error) {
	return filepath.Glob(filepath.Join(filepath.Dir(l.Kubeconfig), "logs", "audit*.log"))
}

// Host returns the host of a name and address.
func (l *Lab) Host(name, ip string) Host { return Host{Name: name, IP: ip, lab: l} }

// Compute returns the compute of a number.
func (l *Lab) Compute(i int) Host {
	return l.Host(fmt.Sprintf("edpm-compute-%d", i), fmt.Sprintf("192.168.122.%d", 100+i))
}

// OnVMs reports whether a suite has virtual machines in the place of containers: E2E_HOSTS=vm.
func OnVMs() bool { return os.Getenv("E2E_HOSTS") == "vm" }

// VM returns the host of a number that is a virtual machine, see "lab up --vms".
func (l *Lab) VM(i int) Host {
	return Host{Name: fmt.Sprintf("edpm-vm-%d", i), IP: fmt.Sprintf("192.168.122.%d", 150+i), vm: true, lab: l}
}

// Controller returns the host of OpenStack's controller, with "lab up --openstack" or --ovn.
func (l *Lab) Controller() Host { return l.Host("edpm-controller-0", "192.168.122.10") }

// Binaries is the directory of kubectl and the other programs of Kubernetes.
func (l *Lab) Binaries() string { return filepath.Dir(l.kubectl) }

// PrivateKey is the key that the hosts let in.
func (l *Lab) PrivateKey() ([]byte, error) { return os.ReadFile(l.key) }

// Run runs a command in the root of the repository and returns what it printed
// on standard output, without the last line break.
func (l *Lab) Run(ctx context.Context, name string, args ...string) (string, error) {
	return l.RunWithInput(ctx, "", name, args...)
}

// RunWithInput is Run with something on standard input.
func (l *Lab) RunWithInput(ctx context.Context, input, name string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = l.Root, strings.NewReader(input), &stdout, &stderr
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	out := strings.TrimRight(stdout.String(), "\n")
	if err != nil {
		return out, fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(name), strings.Join(args, " "), err, out, stderr.String())
	}
	return out, nil
}

// Kubectl runs kubectl as the administrator.
func (l *Lab) Kubectl(ctx context.Context, args ...string) (string, error) {
	return l.Run(ctx, l.kubectl, append([]string{"--kubeconfig", l.Kubeconfig}, args...)...)
}

// Apply applies YAML as a person would, with strict validation of fields.
func (l *Lab) Apply(ctx context.Context, yaml string, args ...string) error {
	_, err := l.RunWithInput(ctx, yaml, l.kubectl,
		append([]string{"--kubeconfig", l.Kubeconfig, "apply", "--server-side", "--force-conflicts", "--validate=strict", "-f", "-"}, args...)...)
	return err
}

// Kustomize renders a kustomization of the repository.
func (l *Lab) Kustomize(ctx context.Context, dir string) (string, error) {
	return l.Run(ctx, l.kubectl, "kustomize", dir)
}

// ManagerNamespace is where DeployManager deploys.
const ManagerNamespace = "edpm-operators-system"

// DeployManager builds the manager and deploys it as people would, from
// config/overlays/lab.
func (l *Lab) DeployManager(ctx context.Context) error {
	if _, err := l.Run(ctx, "make", "--silent", "image-manager"); err != nil {
		return err
	}
	if err := l.Load(ctx, "bin/manager.tar"); err != nil {
		return err
	}
	yaml, err := l.Kustomize(ctx, "config/overlays/lab")
	if err != nil {
		return err
	}
	if err := l.Apply(ctx, yaml); err != nil {
		return err
	}
	_, err = l.Kubectl(ctx, "-n", ManagerNamespace, "rollout", "status", "deployment", "edpm-operators-manager", "--timeout=5m")
	return err
}

// SSH runs a shell script on the host as root and returns its standard output.
func (h Host) SSH(ctx context.Context, script string) (string, error) {
	return h.lab.Run(ctx, "ssh", append(h.lab.sshOptions(), "root@"+h.IP, script)...)
}

func (l *Lab) sshOptions() []string {
	return []string{"-i", l.key, "-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=no",
		"-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-o", "ConnectTimeout=10", "-o", "BatchMode=yes"}
}

// Power turns a virtual machine on or off, or off and on again: state is on, off or reset.
func (h Host) Power(ctx context.Context, state string) error {
	_, err := h.lab.Run(ctx, h.lab.program, "power", h.Name, state)
	return err
}

// ShutDown has the host end what runs on it, and turns it off. Up starts it again.
func (h Host) ShutDown(ctx context.Context) error {
	if !h.vm {
		_, err := h.lab.Run(ctx, "podman", "stop", "--time", "180", h.Name)
		return err
	}
	if _, err := h.SSH(ctx, "systemctl poweroff"); err != nil {
		return err
	}
	_, err := h.lab.Run(ctx, "timeout", "300", "sh", "-c", `while pgrep -f "^qemu-system-x86_64 -name $0 " >/dev/null; do sleep 1; done`, h.Name)
	return err
}

// Console runs a shell script on the host as root, also when sshd is down, unless it is a virtual machine. It
// enters the namespaces of the host's container, which costs less than podman.
func (h Host) Console(ctx context.Context, script string) (string, error) {
	if h.vm {
		return h.SSH(ctx, script)
	}
	pid, err := h.pid(ctx)
	if err != nil {
		return "", err
	}
	return h.lab.Run(ctx, "nsenter", "--target", pid, "--all", "env", "-C", "/", "-i", "HOME=/root",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "sh", "-c", script)
}

// LoadImage builds an image of test/lab/images unless it is there, and loads it on the host.
func (h Host) LoadImage(ctx context.Context, name string) error {
	archives, err := h.lab.Run(ctx, filepath.Join(h.lab.Root, "test", "lab", "images", "build.sh"), name)
	if err != nil {
		return err
	}
	if err := h.copy(ctx, lastLine(archives), "/var/tmp/image.tar"); err != nil {
		return err
	}
	_, err = h.Console(ctx, "podman --runtime runc load --quiet --input /var/tmp/image.tar && rm /var/tmp/image.tar")
	return err
}

func (h Host) copy(ctx context.Context, file, target string) error {
	if !h.vm {
		_, err := h.lab.Run(ctx, "podman", "cp", file, h.Name+":"+target)
		return err
	}
	_, err := h.lab.Run(ctx, "scp", append(h.lab.sshOptions(), file, "root@"+h.IP+":"+target)...)
	return err
}

// SampleClass is the text of a class of config/samples/classes.
func (l *Lab) SampleClass(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(l.Root, "config", "samples", "classes", "edpm_v1beta1_edpmserviceclass_"+name+".yaml"))
	return string(text), err
}

// pid of the first process of the host.
func (h Host) pid(ctx context.Context) (string, error) {
	h.lab.mu.Lock()
	defer h.lab.mu.Unlock()
	if pid := h.lab.pids[h.Name]; pid != "" {
		return pid, nil
	}
	pid, err := h.lab.Run(ctx, "podman", "container", "inspect", "--format", "{{.State.Pid}}", h.Name)
	if err == nil {
		h.lab.pids[h.Name] = pid
	}
	return pid, err
}

const runsLog = "/var/log/edpm/runs.log"

// Run is one line of the audit trail of a host.
type Run struct {
	Event, Run, Step, Hash string
}

// Runs returns what the runs noted on the host, in order. A host that was never
// configured has none.
func (h Host) Runs(ctx context.Context) ([]Run, error) {
	text, err := h.runsLog(ctx)
	if err != nil {
		return nil, err
	}
	var runs []Run
	for line := range strings.Lines(text) {
		run, err := parseRun(line)
		if err != nil {
			return nil, fmt.Errorf("runs.log of %s: %w", h.Name, err)
		}
		runs = append(runs, run)
	}
	return runs, nil
}

func (h Host) runsLog(ctx context.Context) (string, error) {
	if h.vm {
		return h.SSH(ctx, "cat "+runsLog+" 2>/dev/null || true")
	}
	pid, err := h.pid(ctx)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join("/proc", pid, "root", runsLog))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(text), err
}

func parseRun(line string) (Run, error) {
	fields := strings.Fields(line)
	if len(fields) != 5 {
		return Run{}, fmt.Errorf("%q has %d fields and needs 5", line, len(fields))
	}
	run := Run{Event: fields[1]}
	for i, into := range []*string{&run.Run, &run.Step, &run.Hash} {
		key, value, ok := strings.Cut(fields[i+2], "=")
		if !ok || key != []string{"run", "step", "hash"}[i] {
			return Run{}, fmt.Errorf("%q: field %d is not what was expected", line, i+3)
		}
		*into = value
	}
	return run, nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// FindRoot returns the root of the repository that holds the working directory.
func FindRoot() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, statErr := os.Stat(filepath.Join(dir, "go.mod")); statErr == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("the working directory is not within the repository")
		}
	}
	return "", err
}

// NewKey makes a key pair at path and returns the private half.
func (l *Lab) NewKey(ctx context.Context, path string) (string, error) {
	if _, err := l.Run(ctx, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path); err != nil {
		return "", err
	}
	key, err := os.ReadFile(path)
	return string(key), err
}
