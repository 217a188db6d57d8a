package conditions

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

func TestEveryEntrySaysWhatItMeansAndWhatHelps(t *testing.T) {
	for _, table := range Tables() {
		for _, c := range table.Conditions {
			where := table.Name + " " + string(c.Type)
			if c.Means == "" || len(c.Reasons) == 0 && c.Like == "" {
				t.Errorf("%s says nothing", where)
			}
			if like, ok := named(c.Like); c.Like != "" && (!ok || like.Title == "") {
				t.Errorf("%s refers to the table %q, which is not there or has no title", where, c.Like)
			}
			for _, r := range c.Reasons {
				if r.Name == "" || r.Means == "" || r.Remedy == "" || strings.ContainsAny(r.Means+r.Remedy, "|\n") {
					t.Errorf("%s: reason %+v lacks something, or breaks a table", where, r)
				}
			}
			if len(slices.CompactFunc(slices.Clone(c.Reasons), func(a, b Reason) bool { return a.Name == b.Name })) != len(c.Reasons) {
				t.Errorf("%s has a reason twice", where)
			}
		}
	}
}

// A text that no table has is explained nowhere.
func TestEveryGeneratedTextIsInATable(t *testing.T) {
	used := map[string]bool{}
	ast.Inspect(parse(t, "tables.go"), func(n ast.Node) bool {
		if name, ok := n.(*ast.Ident); ok {
			used[name.Name] = true
		}
		return true
	})
	generated := 0
	ast.Inspect(parse(t, "zz_generated.texts.go"), func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			if generated++; !used[spec.Names[0].Name] {
				t.Errorf("tables.go does not have %s", spec.Names[0].Name)
			}
		}
		return true
	})
	if generated < 150 {
		t.Errorf("found only %d generated texts", generated)
	}
}

func parse(t *testing.T, name string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		name    string
		asked   string
		kinds   string // of the first match
		matches int
		reasons int // of the first match
	}{
		{"a reason of one condition", "CellMismatch", "NovaExternalCompute", 1, 1},
		{"in any case", "cellmismatch", "NovaExternalCompute", 1, 1},
		{"a condition with all its reasons", "ProvisionReady", "OpenStackDataPlaneNode", 2, 2},
		{"a reason of several conditions", "SecretKeyMissing", "OpenStackDataPlaneNode", 20, 1},
		{"what no one says", "Sunshine", "", 0, 0},
		{"nothing", "", "", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := Find(c.asked)
			if len(found) != c.matches {
				t.Fatalf("found %d matches, want %d: %+v", len(found), c.matches, found)
			}
			if c.matches > 0 && (found[0].Kinds[0] != c.kinds || len(found[0].Condition.Reasons) != c.reasons) {
				t.Errorf("the first is %+v", found[0])
			}
		})
	}
}

func TestPageHasItsTablesMadeAnew(t *testing.T) {
	page := "# Nova\n\n<!-- conditions of Nova, made by make docs -->\nold\n<!-- end -->\n\nAfter it.\n"
	made, err := Page(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# Nova\n", "| `NovaAllCellReady` | every cell is Ready | `CellsNotReady` |", "| | | `ComputesRemaining` |", "<!-- end -->\n\nAfter it.\n"} {
		if !strings.Contains(made, want) {
			t.Errorf("the page lacks %q:\n%s", want, made)
		}
	}
	if strings.Contains(made, "made by make docs -->\nold") {
		t.Errorf("the old table is still there:\n%s", made)
	}
	if again, err := Page(made); err != nil || again != made {
		t.Errorf("made again it is another one (%v):\n%s", err, again)
	}
}

func TestPageRefusesMarksThatMeanNothing(t *testing.T) {
	for name, page := range map[string]string{
		"no table is called Heat": "<!-- conditions of Heat, made by make docs -->\n<!-- end -->\n",
		"it does not end":         "<!-- conditions of Nova, made by make docs -->\n",
	} {
		if _, err := Page(page); err == nil {
			t.Errorf("%s, and there is no error", name)
		}
	}
}

func TestReferenceHasEveryReasonOnce(t *testing.T) {
	text := Reference()
	for _, name := range []string{"`CellMismatch` | `InputReady` | [NovaExternalCompute](novaexternalcompute.md#conditions)", "`RolloutHeld` | `DeploymentReady`"} {
		if !strings.Contains(text, name) {
			t.Errorf("the page lacks %s", name)
		}
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if unique := slices.Compact(slices.Clone(lines)); len(unique) != len(lines) {
		t.Error("a line is there twice")
	}
}
