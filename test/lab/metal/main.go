// Command metal plays baremetal-operator for the BareMetalHosts of one namespace of
// the lab: Metal3's own cannot be built here, and there are no computers to provision.
// It takes each host through the states of the real one. A machine is a host of the
// lab that boots with the distribution's cloud-init, which finds the user data and
// network data on a configuration drive, as on real hardware.
//
//	sudo go run ./test/lab up --machines
//	sudo go run ./test/lab/metal -namespace openstack
//
// What is not real: the image (spec.image is not read: a machine boots edpm-machine),
// the BMC, and the hardware data (one NIC eth0 with spec.bootMACAddress).
// Annotation lab.edpm-operators.io/fault: "<type>: <message>" puts a host in error.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
	"github.com/edpm-operators/edpm-operators/test/envtest"
	"github.com/edpm-operators/edpm-operators/test/fakemetal"
	"github.com/edpm-operators/edpm-operators/test/lab/internal/cluster"
)

// faultAnnotation orders an error.
const faultAnnotation = "lab.edpm-operators.io/fault"

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	namespace := flag.String("namespace", "openstack", "whose BareMetalHosts it looks after")
	flag.Parse()
	if err := run(ctx, *namespace); err != nil {
		fmt.Fprintln(os.Stderr, "metal:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, namespace string) error {
	lab, err := cluster.FromEnvironment()
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", lab.Kubeconfig())
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of the lab, which must be up: %w", err)
	}
	scheme, err := envtest.NewScheme()
	if err != nil {
		return err
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	driver := &fakemetal.Driver{
		API: api, Namespace: namespace, Machines: machines{lab}, Tick: 500 * time.Millisecond,
		Report: func(err error) { fmt.Fprintln(os.Stderr, "metal:", err) },
	}
	driver.Run(ctx)
	return nil
}

// machines are containers of the lab.
type machines struct{ lab *cluster.Lab }

// Inspect implements fakemetal.Machines.
func (m machines) Inspect(host *metal3v1.BareMetalHost) metal3v1.HardwareDetails {
	const gigabyte = 1_000_000_000
	return metal3v1.HardwareDetails{
		RAMMebibytes: 16 << 10, CPU: metal3v1.CPU{Arch: "x86_64", Count: 8, ClockMegahertz: 2400},
		Storage: []metal3v1.Storage{{Name: "/dev/sda", SizeBytes: 100 * gigabyte}},
		NICs:    []metal3v1.NIC{{Name: "eth0", MAC: host.Spec.BootMACAddress, PXE: true}},
	}
}

// Fault implements fakemetal.Machines.
func (m machines) Fault(host *metal3v1.BareMetalHost) (kind, message string) {
	kind, message, _ = strings.Cut(host.Annotations[faultAnnotation], ": ")
	return kind, message
}

// Stays implements fakemetal.Machines.
func (m machines) Stays(*metal3v1.BareMetalHost) bool { return false }

// Provision implements fakemetal.Machines.
func (m machines) Provision(ctx context.Context, host *metal3v1.BareMetalHost, boot fakemetal.Boot) error {
	fmt.Fprintf(os.Stderr, "metal: %s boots\n", host.Name)
	return m.lab.Boot(ctx, cluster.Machine{Name: host.Name, MAC: host.Spec.BootMACAddress, UserData: boot.UserData, NetworkData: boot.NetworkData})
}

// Deprovision implements fakemetal.Machines.
func (m machines) Deprovision(ctx context.Context, host *metal3v1.BareMetalHost) error {
	fmt.Fprintf(os.Stderr, "metal: %s is wiped\n", host.Name)
	return m.lab.Wipe(ctx, host.Name)
}
