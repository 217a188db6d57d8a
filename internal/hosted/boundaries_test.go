package hosted

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const repository = "../.."

// byHand are the files of each typed kind, and the most lines that they may have:
// types, controller and admission, all that a service on hosts needs of its own. Of
// shared files, which are for two kinds alone, each has half.
var byHand = map[string]struct {
	files, shared []string
	most          int
}{
	"NovaExternalCompute": {[]string{
		"apis/nova/v1beta1/novaexternalcompute_types.go", "controllers/nova/novaexternalcompute/*.go", "webhooks/nova/novaexternalcompute.go",
	}, nil, 580},
	"OVNController":    {[]string{"apis/neutron/v1beta1/ovncontroller_types.go", "controllers/neutron/ovncontroller/*.go"}, ofOVN, 360},
	"OVNMetadataAgent": {[]string{"apis/neutron/v1beta1/ovnmetadataagent_types.go", "controllers/neutron/ovnmetadataagent/*.go"}, ofOVN, 360},
}

// ofOVN are the files that the kinds of OVN share, the group of the API included.
var ofOVN = []string{
	"apis/neutron/v1beta1/groupversion_info.go", "apis/neutron/v1beta1/ovn.go", "internal/neutron/*.go", "webhooks/neutron/*.go",
}

func TestAServiceOnHostsIsShort(t *testing.T) {
	for kind, c := range byHand {
		lines := linesOf(t, c.files) + linesOf(t, c.shared)/2
		if lines > c.most {
			t.Errorf("%s has %d lines of Go, and may have %d: what all services have in common belongs into internal/hosted", kind, lines, c.most)
		}
		t.Logf("%s has %d lines of Go", kind, lines)
	}
}

func linesOf(t *testing.T, patterns []string) (lines int) {
	t.Helper()
	for _, pattern := range patterns {
		for _, file := range goFiles(t, pattern) {
			lines += bytes.Count(read(t, file), []byte("\n"))
		}
	}
	return lines
}

// Every file of a group of services is counted for one of its kinds.
func TestNoFileOfAServiceIsForgotten(t *testing.T) {
	counted := map[string]bool{}
	for _, c := range byHand {
		for _, pattern := range slices.Concat(c.files, c.shared) {
			for _, file := range goFiles(t, pattern) {
				counted[file] = true
			}
		}
	}
	for _, pattern := range []string{"apis/neutron/*/*.go", "controllers/neutron/*/*.go", "internal/neutron/*.go", "webhooks/neutron/*.go"} {
		for _, file := range goFiles(t, pattern) {
			if !counted[file] {
				t.Errorf("%s is counted for no kind", file)
			}
		}
	}
}

// dataPlane are the packages that serve every service and so know none.
var dataPlane = []string{
	"apis/dataplane/v1beta1/*.go", "apis/common/*.go", "apis/common/hosted/*.go",
	"controllers/dataplane/*/*.go", "webhooks/dataplane/*.go",
	"internal/dataplane/*.go", "internal/dataplane/*/*.go", "internal/edpm/*.go", "internal/hosted/*.go", "internal/hostlock/*.go",
}

// A service has an API group of its own, or one of edpm-operators for services without Go.
var (
	serviceGroup = regexp.MustCompile(`/((apis|controllers|webhooks|internal)/(nova|neutron)|internal/edpmservice|(apis|controllers|webhooks)/edpm)(/|$)`)
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
	for _, service := range []string{"controllers/nova/novaexternalcompute/*.go", "controllers/neutron/*/*.go", "internal/neutron/*.go"} {
		for _, file := range goFiles(t, service) {
			if len(servicesIn(t, file)) == 0 {
				t.Errorf("%s is of a service, and no name of one is found in it", file)
			}
		}
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
