package hosted

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const repository = "../.."

// byHand are the files of each typed kind, and the most lines that they may have:
// types, controller and admission, all that a service on hosts needs of its own.
var byHand = map[string]struct {
	files []string
	most  int
}{
	"NovaExternalCompute": {[]string{
		"apis/nova/v1beta1/novaexternalcompute_types.go", "controllers/nova/novaexternalcompute/*.go", "webhooks/nova/novaexternalcompute.go",
	}, 450},
}

func TestAServiceOnHostsIsShort(t *testing.T) {
	for kind, c := range byHand {
		lines := 0
		for _, pattern := range c.files {
			for _, file := range goFiles(t, pattern) {
				lines += bytes.Count(read(t, file), []byte("\n"))
			}
		}
		if lines > c.most {
			t.Errorf("%s has %d lines of Go, and may have %d: what all services have in common belongs into internal/hosted", kind, lines, c.most)
		}
		t.Logf("%s has %d lines of Go", kind, lines)
	}
}

// dataPlane are the packages that serve every service and so know none.
var dataPlane = []string{
	"apis/dataplane/v1beta1/*.go", "apis/edpm/*.go", "apis/hosted/*.go",
	"controllers/dataplane/*/*.go", "webhooks/dataplane/*.go",
	"internal/edpm/*.go", "internal/hosted/*.go", "internal/hostlock/*.go", "internal/inherit/*.go", "internal/nodes/*.go", "internal/nodestatus/*.go",
}

// A service has an API group of its own, or one of the suite for services without Go.
var (
	serviceGroup = regexp.MustCompile(`/(apis|controllers|webhooks|internal)/(nova|neutron|edpmservice)(/|$)`)
	serviceName  = regexp.MustCompile(`(?i)nova|neutron|ovn|EDPMService`)
)

func TestTheDataPlaneKnowsNoService(t *testing.T) {
	files := 0
	for _, pattern := range dataPlane {
		for _, file := range goFiles(t, pattern) {
			files++
			for _, found := range servicesIn(t, file) {
				t.Errorf("%s knows a service: %s", file, found)
			}
		}
	}
	if files < 50 {
		t.Errorf("found only %d files of the data plane", files)
	}
}

// servicesIn returns imports, identifiers and texts of a file that name a service.
func servicesIn(t *testing.T, name string) (found []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, read(t, name), parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		text := ""
		switch n := n.(type) {
		case *ast.ImportSpec:
			if serviceGroup.MatchString(strings.Trim(n.Path.Value, `"`)) {
				found = append(found, n.Path.Value)
			}
			return false
		case *ast.Ident:
			text = n.Name
		case *ast.BasicLit:
			text = n.Value
		}
		if serviceName.MatchString(text) {
			found = append(found, text)
		}
		return true
	})
	return found
}

// goFiles returns the files of a pattern that are written by hand and no tests.
func goFiles(t *testing.T, pattern string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(repository, pattern))
	if err != nil || len(all) == 0 {
		t.Fatalf("no file is %s (%v)", pattern, err)
	}
	var files []string
	for _, file := range all {
		if base := filepath.Base(file); !strings.HasSuffix(base, "_test.go") && !strings.HasPrefix(base, "zz_generated") {
			files = append(files, file)
		}
	}
	return files
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
