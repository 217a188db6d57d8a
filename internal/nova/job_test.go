package nova

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakeManage answers as nova-manage 26.2 does, and notes what it is asked. cells
// is the table of list_cells, to which create_cell and map_cell0 add.
const fakeManage = `#!/bin/bash
shift 3 # --config-dir DIR cell_v2
echo "$*" >> "$CALLS"
case $1 in
list_cells) cat "$CELLS" ;;
create_cell) echo "| $3 | new-id | rabbit://u:****@bus/ | mysql+pymysql://u:****@db/x | False |" >> "$CELLS" ;;
map_cell0) echo "| cell0 | 00000000-0000-0000-0000-000000000000 | none:/// | mysql+pymysql://u:****@db/x | False |" >> "$CELLS" ;;
esac
`

const head = "+-------+----+\n|  Name | UUID | Transport URL | Database Connection | Disabled |\n+-------+----+\n"

func TestACellIsMappedOnceAndThenUpdated(t *testing.T) {
	const listed = "| cell1 | id-1 | rabbit://u:****@bus/ | mysql+pymysql://u:****@db/x | False |\n"
	for name, c := range map[string]struct {
		cell, cells string
		want        []string // calls beside list_cells
		fails       bool
	}{
		"a new cell":         {"cell1", head, []string{"create_cell --name cell1"}, false},
		"a cell that exists": {"cell1", head + listed, []string{"update_cell --cell_uuid id-1 --name cell1"}, false},
		"one whose name begins alike": {
			"cell10", head + listed, []string{"create_cell --name cell10"}, false,
		},
		"cell0, which has no message bus": {
			"cell0", head, []string{"map_cell0"}, false,
		},
		"cell0 that exists": {
			"cell0", head + "| cell0 | 00000000-0000-0000-0000-000000000000 | none:/ | mysql+pymysql://u:****@db/x | False |\n",
			[]string{"update_cell --cell_uuid 00000000-0000-0000-0000-000000000000 --name cell0 --transport-url none:///"}, false,
		},
		"two of one name": {"cell1", head + listed + listed, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{"nova-manage": fakeManage, "map-cell.sh": string(mapCell), "cells": c.cells, "calls": ""} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			command := exec.Command("/bin/bash", filepath.Join(dir, "map-cell.sh"), c.cell)
			command.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "CALLS=" + filepath.Join(dir, "calls"), "CELLS=" + filepath.Join(dir, "cells")}
			output, err := command.CombinedOutput()
			if (err != nil) != c.fails {
				t.Fatalf("it ends with %v; want a failure: %v\n%s", err, c.fails, output)
			}
			calls, err := os.ReadFile(filepath.Join(dir, "calls"))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for call := range strings.Lines(string(calls)) {
				if call != "list_cells\n" {
					got = append(got, strings.TrimSpace(call))
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the calls differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoCommandLineShowsAPassword(t *testing.T) {
	config := inputsOf(func(c *Config) {
		c.TransportURL, c.APIConnection = "rabbit://u:hunter2@bus/", "mysql+pymysql://nova:hunter2@api/nova_api"
	})
	for _, cell := range []string{"cell0", "cell1"} {
		job, err := MappingJob("j", cell, config)
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range job.Commands {
			if strings.Contains(strings.Join(command, " "), "hunter2") {
				t.Errorf("the command is %q", command)
			}
		}
		if !strings.Contains(string(job.Config["01-nova.conf"]), "transport_url = rabbit://u:hunter2@bus/") {
			t.Error("the configuration has not the message bus")
		}
	}
}
