package nova

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/edpm-operators/edpm-operators/internal/podified"
)

// The tables that nova-status prints, as seen with nova 31 and 33.
const (
	passed = `+--------------------------------------------+
| Upgrade Check Results                      |
+--------------------------------------------+
| Check: Cells v2                            |
| Result: Success                            |
| Details: None                              |
+--------------------------------------------+
`
	warned = passed + `| Check: Cinder API                          |
| Result: Warning                            |
| Details: Unable to determine Cinder API    |
|   version due to error: http://u:secret@h  |
+--------------------------------------------+
| Check: hw_machine_type unset               |
| Result: Warning                            |
| Details: Instances found without           |
|   hw_machine_type set. For more details    |
|   see the following: https://docs.example  |
+--------------------------------------------+
`
	failed = warned + `| Check: Placement API                       |
| Result: Failure                            |
| Details: No credentials specified for      |
|   placement API in nova.conf.              |
+--------------------------------------------+
`
)

// conductor is the record of the super conductor, which reported a moment ago.
const conductor = "nova-conductor=66=nova-cell0-conductor-0=5 "

// deployed are the services of a Nova with one cell, whose conductors tests take for those of cell0, too.
func deployed(computes ...string) *DeployedServices {
	return &DeployedServices{Conductor: "nova-cell0-conductor", Cells: []string{"cell0"}, Computes: append([]string{}, computes...)}
}

func TestCheckOfAnUpgrade(t *testing.T) {
	for name, c := range map[string]struct {
		api, main, services, table, code string
		ends                             int
		leaves                           string
		args                             []string
		deployed                         *DeployedServices
	}{
		"all is well":             {api: "a1", main: "m1", table: passed, code: "0"},
		"there is no schema yet":  {table: passed, code: "0"},
		"warnings are no failure": {api: "a1", main: "m1", table: warned, code: "1", leaves: "UpgradeWarnings\nCinder API: Unable to determine Cinder API version; hw_machine_type unset: Instances found without hw_machine_type set"},
		"a check fails":           {api: "a1", main: "m1", table: failed, code: "2", ends: 2, leaves: "UpgradeCheckFailed\nPlacement API: No credentials specified for placement API in nova.conf"},
		"nova-status fails":       {api: "a1", main: "m1", table: "Error:\nTraceback", code: "255", ends: 255},
		"the schema of the API database is newer": {
			api: "a2", main: "m1", table: passed, code: "0", ends: 2, leaves: "ImageTooOld\nthe image has nova 31.0.0, which does not know revision a2 of the schema of the API database",
		},
		"the schema of a cell is newer": {
			api: "a1", main: "m2", table: passed, code: "0", ends: 2, leaves: "ImageTooOld\nthe image has nova 31.0.0, which does not know revision m2 of the schema of cell0",
		},
		"services are newer": {
			api: "a1", main: "m1", services: "nova-scheduler=70=a nova-conductor=72=b nova-compute=66=c", table: passed, code: "0", ends: 2,
			leaves: "ImageTooOld\nthe image has nova 31.0.0 with service version 68, and cell0 has nova-conductor of version 72",
		},
		"computes are of the oldest release that is supported": {
			api: "a1", main: "m1", services: "nova-compute=66=a nova-conductor=60=b", table: passed, code: "0",
		},
		"computes are older than what is supported": {
			api: "a1", main: "m1", services: "nova-compute=66=a nova-compute=65=c nova-compute=65=b", table: passed, code: "0", ends: 2,
			leaves: "ComputesTooOld\n4 computes are older than nova 31.0.0 supports, which is Caracal with service version 66: b, b, c, c",
		},
		"all services are of the release that is deployed": {
			api: "a1", main: "m1", services: conductor + "nova-conductor=66=nova-cell0-conductor-1=10 nova-compute=66=n0=10", table: passed, code: "0", deployed: deployed("n0"),
		},
		"a compute was restarted with an earlier release": {
			api: "a1", main: "m1", services: "nova-conductor=67=nova-cell0-conductor-0=10 nova-compute=66=n0=10 nova-compute=67=n1=10", table: passed, code: "0", deployed: deployed("n0", "n1"), ends: 2,
			leaves: "ServicesOlder\n1 services are older than the release that is deployed, which has service version 67: nova-compute on n0 (66)",
		},
		"a compute that is older has an image that was chosen for it, or is of another tool": {
			api: "a1", main: "m1", services: "nova-conductor=67=nova-cell0-conductor-0=10 nova-compute=66=n0=10", table: passed, code: "0", deployed: deployed("n1"),
		},
		"no compute has the image that is recorded": {
			api: "a1", main: "m1", services: "nova-conductor=67=nova-cell0-conductor-0=10 nova-compute=66=n0=10", table: passed, code: "0", deployed: deployed(),
		},
		"an earlier conductor and scheduler still run": {
			api: "a1", main: "m1", services: conductor + "nova-conductor=65=controller-1=30 nova-scheduler=65=controller-1=10", table: passed, code: "0", deployed: deployed(), ends: 2,
			leaves: "ServicesOlder\n2 services are older than the release that is deployed, which has service version 66: nova-conductor on controller-1 (65), nova-scheduler on controller-1 (65)",
		},
		"earlier conductors and schedulers, which are down, are left": {
			api: "a1", main: "m1", services: conductor + "nova-scheduler=65=nova-scheduler-1=86400 nova-conductor=65=controller-1 nova-consoleauth=1=controller-1=10", table: passed, code: "0", deployed: deployed(),
		},
		"a compute is newer than what is deployed, which the update brings the others to": {
			api: "a1", main: "m1", services: conductor + "nova-compute=68=n0=10", table: passed, code: "0", deployed: deployed("n0"),
		},
		"the super conductor has not started yet": {
			api: "a1", main: "m1", services: "nova-compute=66=n0=10 nova-conductor=68=nova-cell0-conductor-other-0=10", table: passed, code: "0", deployed: deployed("n0"),
		},
		"services are older while an update is in progress": {
			api: "a1", main: "m1", services: "nova-conductor=67=nova-cell0-conductor-0=10 nova-compute=66=n0=10", table: passed, code: "0",
		},
		"computes are as new as the image, or newer": {services: "nova-compute=68=a nova-compute=70=b nova-conductor=66=c", args: []string{"computes"}},
		"computes are older": {
			services: "nova-compute=68=new nova-compute=66=a nova-compute=66=b", args: []string{"computes"},
			ends: 2, leaves: "ComputesOlder\n2 computes are older than nova 31.0.0 with service version 68: a, b",
		},
		"many computes are older": {
			services: "nova-compute=1=a nova-compute=1=b nova-compute=1=c nova-compute=1=d nova-compute=1=e nova-compute=1=f nova-compute=1=g", args: []string{"computes"},
			ends: 2, leaves: "ComputesOlder\n7 computes are older than nova 31.0.0 with service version 68: a, b, c, d, e and 2 more",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			job, err := UpgradeCheckJob("check", "api:1", c.deployed, Config{}, podified.Snippets{})
			if err != nil {
				t.Fatal(err)
			}
			files := map[string]string{"nova-status": "#!/bin/bash\ncat \"$TABLE\"\nexit $CODE\n", "table": c.table, "message": ""}
			for _, name := range []string{checkFile, deployedFile} {
				if content, has := job.Config[name]; has {
					files[name] = string(content)
				}
			}
			for file, content := range files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			command := exec.Command("python3", append([]string{filepath.Join(dir, checkFile)}, c.args...)...)
			command.Env = []string{
				"PATH=" + dir + ":" + os.Getenv("PATH"), "PYTHONPATH=testdata/python", "PYTHONDONTWRITEBYTECODE=1",
				"KNOWN=a1 m1", "API=" + c.api, "MAIN=" + c.main, "SERVICES=" + c.services,
				"TABLE=" + filepath.Join(dir, "table"), "CODE=" + c.code, "TERMINATION_LOG=" + filepath.Join(dir, "message"),
			}
			output, _ := command.CombinedOutput()
			t.Logf("the output is %s", output)
			left, err := os.ReadFile(filepath.Join(dir, "message"))
			if err != nil {
				t.Fatal(err)
			}
			if ended := command.ProcessState.ExitCode(); ended != c.ends || string(left) != c.leaves {
				t.Errorf("it ends with %d and leaves %q; want %d and %q", ended, left, c.ends, c.leaves)
			}
		})
	}
}
