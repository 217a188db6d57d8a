package nova

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fakeManage answers as nova-manage 26.2 does, and notes what it is asked. CELLS is the
// table of list_cells, to which create_cell and map_cell0 add. ENDS are the exit codes
// of commands, of which each call takes one, as command=code; the default is 0.
const fakeManage = `#!/bin/bash
shift 5 # --config-file FILE --config-dir DIR, and cell_v2 or db
echo "$*" >> "$CALLS"
case $1 in
list_cells) cat "$CELLS" ;;
create_cell) echo "| $3 | new-id | rabbit://u:****@bus/ | mysql+pymysql://u:****@db/x | False |" >> "$CELLS" ;;
map_cell0) echo "| cell0 | 00000000-0000-0000-0000-000000000000 | none:/// | mysql+pymysql://u:****@db/x | False |" >> "$CELLS" ;;
esac
for end in $(cat "$ENDS"); do
  if [ "${end%=*}" = "$1" ]; then
    sed -i "0,/$end/s// /" "$ENDS"
    exit "${end#*=}"
  fi
done
`

const head = "+-------+----+\n|  Name | UUID | Transport URL | Database Connection | Disabled |\n+-------+----+\n"

// play runs a script of a Job, and returns what it asks next to list_cells, and how it ends.
func play(t *testing.T, script, cells, ends string, args ...string) (calls []string, ended error) {
	t.Helper()
	dir := t.TempDir()
	text, err := scripts.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
	for file, content := range map[string]string{"nova-manage": fakeManage, "script": string(text), "CELLS": cells, "CALLS": "", "ENDS": ends} {
		path := filepath.Join(dir, file)
		env = append(env, file+"="+path)
		if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command("/bin/bash", append([]string{filepath.Join(dir, "script")}, args...)...)
	command.Env = env
	output, ended := command.CombinedOutput()
	t.Logf("the output is %s", output)
	asked, err := os.ReadFile(filepath.Join(dir, "CALLS"))
	if err != nil {
		t.Fatal(err)
	}
	for call := range strings.Lines(string(asked)) {
		if call != "list_cells\n" {
			calls = append(calls, strings.TrimSpace(call))
		}
	}
	return calls, ended
}

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
			"cell0", head, []string{
				"map_cell0", "update_cell --cell_uuid 00000000-0000-0000-0000-000000000000 --name cell0 --transport-url none:///",
			}, false,
		},
		"cell0 that exists": {
			"cell0", head + "| cell0 | 00000000-0000-0000-0000-000000000000 | none:/ | mysql+pymysql://u:****@db/x | False |\n",
			[]string{"update_cell --cell_uuid 00000000-0000-0000-0000-000000000000 --name cell0 --transport-url none:///"}, false,
		},
		"two of one name": {"cell1", head + listed + listed, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := play(t, mapCellFile, c.cells, "", c.cell)
			if (err != nil) != c.fails {
				t.Fatalf("it ends with %v; want a failure: %v", err, c.fails)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the calls differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestACellIsRemovedUnlessItIsUsed(t *testing.T) {
	const (
		listed  = "| cell1 | id-1 | rabbit://u:****@bus/ | mysql+pymysql://u:****@db/x | False |\n"
		remove  = "delete_cell --cell_uuid id-1"
		archive = "archive_deleted_rows --verbose --until-complete"
	)
	for name, c := range map[string]struct {
		cells, ends string
		want        []string
		fails       bool
	}{
		"an empty cell":                    {head + listed, "", []string{remove}, false},
		"one that is not mapped":           {head, "", nil, false},
		"one whose name begins alike":      {head + strings.Replace(listed, "cell1", "cell10", 1), "", nil, false},
		"one that has hosts":               {head + listed, "delete_cell=2", []string{remove}, true},
		"one that has instances":           {head + listed, "delete_cell=3", []string{remove}, true},
		"one whose instances were deleted": {head + listed, "delete_cell=4 archive_deleted_rows=1", []string{remove, archive, remove}, false},
		"one that gets some meanwhile":     {head + listed, "delete_cell=4 delete_cell=3", []string{remove, archive, remove}, true},
		"one that cannot be archived":      {head + listed, "delete_cell=4 archive_deleted_rows=255", []string{remove, archive}, true},
		"two of one name":                  {head + listed + listed, "", nil, true},
		"a list that fails":                {head + listed, "list_cells=1", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := play(t, unmapCellFile, c.cells, c.ends, "cell1")
			if (err != nil) != c.fails {
				t.Fatalf("it ends with %v; want a failure: %v", err, c.fails)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the calls differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRowsAreArchivedAndThenPurged(t *testing.T) {
	day := func(ago int) string { return time.Now().AddDate(0, 0, -ago).Format(time.DateOnly) }
	archive := "archive_deleted_rows --verbose --until-complete --sleep 1 --task-log --before " + day(30)
	purge := "purge --verbose --before " + day(90)
	for name, c := range map[string]struct {
		ends  string
		want  []string
		fails bool
	}{
		"rows that are archived and purged": {"archive_deleted_rows=1", []string{archive, purge}, false},
		"nothing to do":                     {"purge=3", []string{archive, purge}, false},
		"a database that does not answer":   {"archive_deleted_rows=255", []string{archive}, true},
		"no API database":                   {"archive_deleted_rows=3", []string{archive}, true},
		"a purge that fails":                {"purge=255", []string{archive, purge}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := play(t, purgeFile, "", c.ends, "30", "90")
			if (err != nil) != c.fails {
				t.Fatalf("it ends with %v; want a failure: %v", err, c.fails)
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

func TestDatabasesArePurgedOneAfterTheOther(t *testing.T) {
	minutes := map[string]bool{}
	for _, cell := range []string{"cell0", "cell1", "cell2", "cell3"} {
		minutes[spread("0 0 * * *", "nova-"+cell+"-db-purge")] = true
	}
	if len(minutes) < 3 {
		t.Errorf("by default the databases of four cells are purged at %v: that is at once", minutes)
	}
	if got := spread("0 3 * * *", "nova-cell1-db-purge"); got != "0 3 * * *" {
		t.Errorf("a schedule that is given becomes %q", got)
	}
}
