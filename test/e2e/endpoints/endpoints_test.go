package endpoints

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	podifiedv1 "github.com/edpm-operators/edpm-operators/apis/common/podified"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova"
	"github.com/edpm-operators/edpm-operators/internal/podified"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/tier"
	"github.com/edpm-operators/edpm-operators/test/envtest"
)

// Images of nova 2025.1, which has programs, and 2026.1, which has WSGI applications.
const (
	withPrograms     = "nova"
	withApplications = "nova-newest"
)

// limits are those that podman may set on any machine.
var limits = []string{"--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096"}

// hidden are files of which a container has an empty one, so that it does without.
var hidden = map[string][]string{
	"":      nil,
	"uwsgi": {"/usr/bin/uwsgi", "/usr/bin/uwsgi-core"},
	"all":   {"/usr/bin/uwsgi", "/usr/bin/uwsgi-core", "/usr/sbin/apache2"},
}

func TestEndpoints(t *testing.T) {
	switch {
	case testing.Short():
		t.Skip("images of nova are loaded")
	case os.Geteuid() != 0:
		t.Fatal("the endpoints need root: they run in containers; -short skips them")
	}
	for _, image := range []string{withPrograms, withApplications, "pause"} {
		run(t, filepath.Join(envtest.File(), "test/lab/images/load.sh"), image)
	}
	for name, c := range map[string]struct {
		image, without string
		log            string // what the server writes when it ends
	}{
		"as a program": {withPrograms, "", "WSGI server has stopped"},
		"in uWSGI":     {withApplications, "", "goodbye to uWSGI"},
		"in httpd":     {withApplications, "uwsgi", "caught SIGWINCH"},
	} {
		t.Run(name, func(t *testing.T) {
			stops(t, newPod(t, c.image, c.without, api(true)), c.log)
			if tier.All() {
				stops(t, newPod(t, c.image, c.without, api(false)), c.log)
			}
			if c.image != withPrograms { // which waits for a conductor
				answers(t, newPod(t, c.image, c.without, metadata()))
			}
		})
	}
	t.Run("in an image with neither", func(t *testing.T) {
		p := newPod(t, withApplications, "all", api(false))
		if code := strings.TrimSpace(run(t, "podman", "wait", p.server)); code != "127" {
			t.Errorf("it ends with %s:\n%s", code, p.log(t))
		}
		if message := read(t, filepath.Join(p.dir, "termination-log")); message != string(p.service.Causes[0].Reason) {
			t.Errorf("the termination message is %q, which the condition does not know:\n%s", message, p.log(t))
		}
	})
}

func api(tls bool) *nova.Component {
	c := &nova.Component{Program: "nova-api-os-compute", Name: "nova-api", Port: nova.APIPort, Path: "/", Status: new(*podifiedv1.Status)}
	if tls {
		c.TLS = &novav1.NovaEndpointTLS{SecretName: "certificate"}
	}
	return c
}

func metadata() *nova.Component {
	return &nova.Component{Program: "nova-api-metadata", Name: "nova-metadata", Port: nova.MetadataPort, Path: "/", Status: new(*podifiedv1.Status)}
}

// answers asks a pod as the kubelet does, and ends it.
func answers(t *testing.T, p *pod) {
	t.Helper()
	client := p.ask(t)
	p.expect(t, client, "ready")
	run(t, "podman", "kill", "--signal", "TERM", p.server)
	p.ends(t)
}

// stops ends a pod that has requests, each of which is answered.
func stops(t *testing.T, p *pod, log string) {
	t.Helper()
	client := p.ask(t)
	p.expect(t, client, "ready")
	p.expect(t, client, "listens")
	p.expect(t, client, "asked")
	run(t, "podman", "kill", "--signal", "TERM", p.server)
	p.expect(t, client, "answered [401, 401, 401, 401]")
	p.ends(t)
	if !strings.Contains(p.log(t), log) {
		t.Errorf("another server than was to run has ended, or not as it should: %q is missing in its log\n%s", log, p.log(t))
	}
}

// pod is what Kubernetes makes of a service: containers that share networks and processes.
type pod struct {
	service                  *podified.Service
	name, server, dir, image string
}

// newPod starts a service in an image without some of its files. Databases are files.
func newPod(t *testing.T, image, without string, c *nova.Component) *pod {
	t.Helper()
	config := nova.Config{
		Owner: "Nova nova", TransportURL: "rabbit://u:p@127.0.0.1/", ServicePassword: "p", KeystoneAuthURL: "http://127.0.0.1:5000", ServiceUser: "nova",
		Keystone:   novav1.KeystoneScope{Region: "regionOne", UserDomainName: "Default", ProjectDomainName: "Default"},
		Connection: "sqlite:////var/lib/nova/cell0", APIConnection: "sqlite:////var/lib/nova/api",
	}
	var pair map[string][]byte
	if c.TLS != nil {
		pair = certificate(t)
	}
	service, err := c.Assemble(podified.Snippets{}, config, pair)
	if err != nil {
		t.Fatal(err)
	}
	p := &pod{service: service, name: fmt.Sprintf("edpm-endpoints-%d-%d", os.Getpid(), time.Now().UnixNano()), dir: t.TempDir(), image: "localhost/edpm-" + image + ":latest"}
	p.server = p.name + "-server"
	p.writeFiles(t)
	run(t, "podman", slices.Concat([]string{"--runtime", "runc", "run", "--detach", "--name", p.name, "--network", "none"}, limits, []string{"localhost/pause:latest"})...)
	t.Cleanup(func() { run(t, "podman", "rm", "--force", "--depend", "--time", "0", p.name) })
	p.fillDatabases(t)
	var hide []string
	for _, path := range hidden[without] {
		hide = append(hide, "--volume", filepath.Join(p.dir, "empty")+":"+path+":ro")
	}
	run(t, "podman", p.container(p.server, append(hide, "--detach"), service.Pod.Containers[0].Command...)...)
	return p
}

// databases of each image, which take longer to make than to copy.
var databases = map[string]map[string]string{}

// fillDatabases gives the databases their schema.
func (p *pod) fillDatabases(t *testing.T) {
	t.Helper()
	state := filepath.Join(p.dir, "state")
	if databases[p.image] == nil {
		const manage = "nova-manage --config-file /dev/null --config-dir /etc/nova/nova.conf.d "
		run(t, "podman", p.container(p.name+"-databases", nil, "/bin/sh", "-c", manage+"api_db sync && "+manage+"db sync --local_cell")...)
		databases[p.image] = map[string]string{"api": read(t, filepath.Join(state, "api")), "cell0": read(t, filepath.Join(state, "cell0"))}
		return
	}
	for name, content := range databases[p.image] {
		write(t, filepath.Join(state, name), content, 0o666)
	}
}

// writeFiles writes what is mounted.
func (p *pod) writeFiles(t *testing.T) {
	t.Helper()
	for _, dir := range []string{"config", "state", "tmp"} {
		if err := os.Mkdir(filepath.Join(p.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range p.service.Config {
		write(t, filepath.Join(p.dir, "config", name), string(content), 0o444)
	}
	write(t, filepath.Join(p.dir, "empty"), "", 0o444)
	write(t, filepath.Join(p.dir, "termination-log"), "", 0o666)
	for _, dir := range []string{"state", "tmp"} {
		if err := os.Chown(filepath.Join(p.dir, dir), int(p.service.User), int(p.service.User)); err != nil {
			t.Fatal(err)
		}
	}
}

// container are the arguments that run a command as the container of the service.
func (p *pod) container(name string, options []string, command ...string) []string {
	user := fmt.Sprintf("%d:%d", p.service.User, p.service.User)
	args := []string{
		"--runtime", "runc", "run", "--name", name, "--network", "container:" + p.name, "--pid", "container:" + p.name, "--user", user, "--env", "USER=nova", "--read-only", "--read-only-tmpfs=false", "--cap-drop", "all",
		"--security-opt", "no-new-privileges", "--volume", filepath.Join(p.dir, "config") + ":" + p.service.ConfigDir + ":ro", "--volume", filepath.Join(p.dir, "state") + ":/var/lib/nova",
		"--volume", filepath.Join(p.dir, "tmp") + ":/tmp", "--volume", filepath.Join(p.dir, "termination-log") + ":/dev/termination-log",
		"--volume", filepath.Join(envtest.File(), "test/e2e/endpoints/testdata") + ":/testdata:ro",
	}
	return slices.Concat(args, limits, options, []string{p.image}, command)
}

// ask starts testdata/ask.py in the pod, with what the readiness probe asks.
func (p *pod) ask(t *testing.T) *bufio.Scanner {
	t.Helper()
	get := p.service.Pod.Containers[0].ReadinessProbe.HTTPGet
	scheme := strings.ToLower(string(get.Scheme))
	if scheme == "" {
		scheme = "http"
	}
	cmd := exec.CommandContext(t.Context(), "podman", p.container(p.name+"-client", nil, "python3", "/testdata/ask.py", fmt.Sprintf("%s://127.0.0.1:%s%s", scheme, get.Port.String(), get.Path))...)
	reader, writer := io.Pipe()
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = writer, writer, 5*time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { writer.CloseWithError(cmd.Wait()) }()
	return bufio.NewScanner(reader)
}

// expect waits for a line of the client.
func (p *pod) expect(t *testing.T, client *bufio.Scanner, line string) {
	t.Helper()
	if !client.Scan() || client.Text() != line {
		rest := client.Text()
		for client.Scan() {
			rest += "\n" + client.Text()
		}
		t.Fatalf("the client says %q; want %q (%v). The server:\n%s", rest, line, client.Err(), p.log(t))
	}
}

// ends waits until the server has ended, for as long as the kubelet does.
func (p *pod) ends(t *testing.T) {
	t.Helper()
	grace := *p.service.Pod.TerminationGracePeriodSeconds
	if out, err := exec.CommandContext(t.Context(), "timeout", fmt.Sprint(grace), "podman", "wait", p.server).CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "0" {
		t.Errorf("the server ends with %q (%v), or not in %d seconds:\n%s", out, err, grace, p.log(t))
	}
}

func (p *pod) log(t *testing.T) string {
	t.Helper()
	out, _ := exec.CommandContext(t.Context(), "podman", "logs", "--tail", "40", p.server).CombinedOutput()
	return string(out)
}

// certificate is one of the address of the pod, and its key.
func certificate(t *testing.T) map[string][]byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "nova"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask is
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// run returns what a program prints.
func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	var errOut bytes.Buffer
	cmd := exec.Command(program, args...) // also after the test, to clean up
	cmd.Stderr, cmd.WaitDelay = &errOut, 5*time.Second
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", program, strings.Join(args, " "), err, out, errOut.String())
	}
	return string(out)
}
