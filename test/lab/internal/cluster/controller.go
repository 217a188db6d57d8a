package cluster

import (
	"context"
	"fmt"
	"os"
	"strings"
)

// controller is the host with what nova's services and computes share, and with neutron
// and OVN. Its address is part of its image, in etc/lab/environment.
var controller = Host{Name: "edpm-controller-0", IP: "192.168.122.10"}

const controllerImage = "edpm-controller"

// controllerMachine is the controller with what starts on it, with neutron and OVN if
// they are wanted.
func controllerMachine(ovn bool) machine {
	m := machine{Host: controller, image: controllerImage, ready: servicesStarted}
	if ovn {
		m.ready = networkStarted
	}
	return m
}

// networkStarted starts OVN's databases, neutron, and what the metadata agents ask, once
// the other services run.
func networkStarted(ctx context.Context) error {
	if err := servicesStarted(ctx); err != nil {
		return err
	}
	if _, err := command(ctx, "podman", "exec", controller.Name, "systemctl", "start", "lab-ovn.target"); err != nil {
		return err
	}
	return servicesStarted(ctx)
}

// servicesStarted waits until no service of the controller is starting or has failed.
func servicesStarted(ctx context.Context) error {
	return waitFor(ctx, "OpenStack on "+controller.Name, func(ctx context.Context) error {
		units, err := command(ctx, "podman", "exec", controller.Name,
			"systemctl", "list-units", "--all", "--plain", "--no-legend", "--state=failed,activating", "lab-*")
		if err == nil && units != "" {
			err = fmt.Errorf("not running: %s", units)
		}
		return err
	})
}

// VirtType returns how guests run on the hosts: kvm, or qemu on a machine that has no
// hardware virtualization. The device alone is no proof of it: a guest without nested
// virtualization may have it too.
func VirtType() string {
	_, err := os.Stat("/dev/kvm")
	cpu, _ := os.ReadFile("/proc/cpuinfo")
	return virtType(err == nil, string(cpu))
}

func virtType(device bool, cpu string) string {
	if device && (strings.Contains(cpu, " vmx ") || strings.Contains(cpu, " svm ")) {
		return "kvm"
	}
	return "qemu"
}

// OpenRC returns the variables with which the program openstack logs in as the
// administrator of the controller's OpenStack, as commands of a shell.
func OpenRC() string {
	return strings.Join([]string{
		"export OS_AUTH_URL=http://" + controller.IP + ":5000/v3",
		"export OS_IDENTITY_API_VERSION=3",
		"export OS_USERNAME=admin",
		"export OS_PASSWORD=lab-password",
		"export OS_USER_DOMAIN_NAME=Default",
		"export OS_PROJECT_NAME=admin",
		"export OS_PROJECT_DOMAIN_NAME=Default",
		"export OS_REGION_NAME=regionOne",
		// The least that the program asks of nova knows no server without a network.
		"export OS_COMPUTE_API_VERSION=2.90",
	}, "\n")
}
