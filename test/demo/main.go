// Command demo shows the main job for real: annotated data plane nodes become
// nova-computes on hosts with systemd and podman, in two cells, each of which runs a guest;
// one guest is moved to another host while it runs. It can be run again at any time; make
// demo-down takes everything away.
//
// What does not depend on one another runs at once. Compilations take turns: they have
// most packages in common.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/edpm-operators/edpm-operators/test/progress"
)

const script = "test/demo/demo.sh"

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := progress.New("make demo").Run(ctx, steps()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func steps() []progress.Step {
	const lab = "bin/lab"
	all := []progress.Step{
		{Name: "packages", Run: progress.Command("hack/install-packages.sh", "lab", "openstack")},
		{Name: "lab program", Run: progress.Command("go", "build", "-o", lab, "./test/lab")},
		{Name: "executables", After: []string{"lab program"}, Run: progress.Command(lab, "binaries")},
		{Name: "manager", After: []string{"executables", "packages"}, Run: progress.Command("make", "--no-print-directory", "image-manager", "plugin")},
		{Name: "lab", After: []string{"lab program", "packages"}, Verbose: true,
			Run: progress.Command(lab, "up", "--host", "edpm-compute-0=192.168.122.100", "--host", "edpm-compute-1=192.168.122.101",
				"--host", "edpm-compute-2=192.168.122.102", "--openstack", "--images", "ansibleee,glance")},
		{Name: "deploy", After: []string{"lab", "manager"}, Run: progress.Command(script, "deploy_manager")},
	}
	for _, step := range []struct{ name, function string }{
		{"inputs", "apply_all"}, {"nova and computes", "wait_all"}, {"guests", "show_guests"},
		{"objects", "show_objects"}, {"hosts with computes", "show_hosts"}, {"services of nova", "show_nova"},
		{"live migration", "show_migration"}, {"refusals", "try_to_move"}, {"what next", "look_around"},
	} {
		all = append(all, progress.Step{
			Name: step.name, After: []string{all[len(all)-1].Name}, Verbose: true, Run: progress.Command(script, step.function),
		})
	}
	return all
}
