package nova

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
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

func TestCheckOfAnUpgrade(t *testing.T) {
	for name, c := range map[string]struct {
		api, main, newer, table, code string
		ends                          int
		leaves                        string
	}{
		"all is well":             {"a1", "m1", "", passed, "0", 0, ""},
		"there is no schema yet":  {"", "", "", passed, "0", 0, ""},
		"warnings are no failure": {"a1", "m1", "", warned, "1", 0, "UpgradeWarnings\nCinder API: Unable to determine Cinder API version; hw_machine_type unset: Instances found without hw_machine_type set"},
		"a check fails":           {"a1", "m1", "", failed, "2", 2, "UpgradeCheckFailed\nPlacement API: No credentials specified for placement API in nova.conf"},
		"nova-status fails":       {"a1", "m1", "", "Error:\nTraceback", "255", 255, ""},
		"the schema of the API database is newer": {
			"a2", "m1", "", passed, "0", 2, "ImageTooOld\nthe image has nova 31.0.0, which does not know revision a2 of the schema of the API database",
		},
		"the schema of a cell is newer": {
			"a1", "m2", "", passed, "0", 2, "ImageTooOld\nthe image has nova 31.0.0, which does not know revision m2 of the schema of cell0",
		},
		"services are newer": {
			"a1", "m1", "nova-scheduler=70 nova-conductor=72", passed, "0", 2,
			"ImageTooOld\nthe image has nova 31.0.0 with service version 68, and cell0 has nova-conductor of version 72",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range map[string]string{"nova-status": "#!/bin/bash\ncat \"$TABLE\"\nexit $CODE\n", "table": c.table, "message": ""} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			command := exec.Command("python3", checkFile)
			command.Env = []string{
				"PATH=" + dir + ":" + os.Getenv("PATH"), "PYTHONPATH=testdata/python", "PYTHONDONTWRITEBYTECODE=1",
				"KNOWN=a1 m1", "API=" + c.api, "MAIN=" + c.main, "NEWER=" + c.newer,
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
