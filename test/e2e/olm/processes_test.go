package olm

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var (
	// programs is the directory of those of OLM.
	programs  string
	processes []*exec.Cmd
	// catalogAddress is where opm serves the catalog.
	catalogAddress string
)

// startOLM serves the catalog with the first bundle, defines the kinds of OLM, and
// starts its two operators.
func startOLM(ctx context.Context) {
	GinkgoHelper()
	catalogAddress = freeAddress()
	serveCatalog(ctx, []string{"0.1.0"})
	_, err := cluster.Kubectl(ctx, "apply", "--server-side", "-f", filepath.Join(programs, "crds"))
	Expect(err).NotTo(HaveOccurred())
	_, err = cluster.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
	Expect(err).NotTo(HaveOccurred())
	start(filepath.Join(programs, "catalog"), "--namespace", olmNS, "--interval", "1m")
	start(filepath.Join(programs, "olm"), "--namespace", olmNS, "--interval", "1m")
}

// serveCatalog makes a catalog of packages, of which the names of the bundles are
// given, the newest last, and serves it instead of the one that is served.
func serveCatalog(ctx context.Context, packages ...[]string) {
	GinkgoHelper()
	catalog := filepath.Join(dir, "catalog")
	Expect(os.RemoveAll(catalog)).To(Succeed())
	for _, bundles := range packages {
		args := []string{"catalog", catalog}
		for _, name := range bundles {
			args = append(args, bundleDir(name))
		}
		_, err := cluster.Run(ctx, "hack/bundle.sh", args...)
		Expect(err).NotTo(HaveOccurred())
	}
	processes = slices.DeleteFunc(processes, func(p *exec.Cmd) bool {
		if filepath.Base(p.Path) != "opm" {
			return false
		}
		stop(p)
		return true
	})
	_, port, err := net.SplitHostPort(catalogAddress)
	Expect(err).NotTo(HaveOccurred())
	start(filepath.Join(programs, "opm"), "serve", catalog, "--port", port, "--pprof-addr", "127.0.0.1:0",
		"--cache-dir", GinkgoT().TempDir(), "--cache-enforce-integrity=false")
	Eventually(func() error {
		conn, err := net.Dial("tcp", catalogAddress)
		if err == nil {
			err = conn.Close()
		}
		return err
	}).Should(Succeed(), "opm does not serve: see %s", logFile("opm"))
}

func freeAddress() string {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer listener.Close()
	return listener.Addr().String()
}

func logFile(name string) string { return filepath.Join(dir, name+".log") }

// start starts a program of OLM, which ends with the test. Where CI is set, those
// programs panic about labels that only their own tests are concerned with.
func start(program string, args ...string) {
	GinkgoHelper()
	out, err := os.OpenFile(logFile(filepath.Base(program)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	Expect(err).NotTo(HaveOccurred())
	cmd := exec.Command(program, args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "CI=") })
	cmd.Env = append(cmd.Env, "KUBECONFIG="+cluster.Kubeconfig)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	Expect(cmd.Start()).To(Succeed())
	processes = append(processes, cmd)
}

func stopOLM() {
	for _, p := range processes {
		stop(p)
	}
}

func stop(p *exec.Cmd) {
	_ = p.Process.Kill() // it may have ended already
	_ = p.Wait()
}

// tail returns the last lines of the log of a program.
func tail(name string, lines int) string {
	text, err := os.ReadFile(logFile(name))
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return fmt.Sprintf("--- %s\n%s\n", logFile(name), strings.Join(all[max(0, len(all)-lines):], "\n"))
}
