package docs_test

import (
	"go/ast"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/edpm-operators/edpm-operators/test/envtest"
)

// The packages that write to objects of the cluster or read them.
var writers = []string{"apis", "internal", "controllers", "cmd"}

// What labels, annotations, finalizers, taints and field managers are called in the
// code: constants by their names, and what stands where one of them is expected.
var (
	keyConstant = regexp.MustCompile(`(?i)(label|annotation|finalizer|taint|finalizerPrefix|manager)$`)
	keyMaps     = []string{"Labels", "MatchLabels", "Annotations"}
	keyTypes    = []string{"MatchingLabels", "HasLabels"}
	keyCalls    = []string{"FieldOwner", "GetLabels", "GetAnnotations"}
	// A key begins with a small letter; reasons, which may end in Label, do not.
	key = regexp.MustCompile(`^[a-z][\w.]*[\w./-]*$`)
)

// A name that no one can look up is a riddle in every object that has it; one that
// is described and no longer there misleads.
func TestEveryLabelAndAnnotationIsExplained(t *testing.T) {
	inCode, onPage := keysOfCode(t), keysOfPage(t)
	if len(inCode) < 40 {
		t.Fatalf("found only %d names in the code: %q", len(inCode), inCode)
	}
	for _, name := range inCode {
		if !slices.Contains(onPage, name) {
			t.Errorf("docs/labels-and-annotations.md does not explain %s, which the code has", name)
		}
	}
	for _, name := range onPage {
		if !slices.Contains(inCode, name) {
			t.Errorf("docs/labels-and-annotations.md explains %s, which the code does not have", name)
		}
	}
}

// firstCell is the first cell of a row of a table.
var firstCell = regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|")

// keysOfPage returns what the tables of the page begin their rows with. Of a name
// that is made of others the part counts that is always the same.
func keysOfPage(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile(envtest.File("docs", "labels-and-annotations.md"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, row := range firstCell.FindAllStringSubmatch(string(page), -1) {
		for _, name := range strings.Split(row[1], ", ") {
			constant, _, _ := strings.Cut(strings.Trim(name, "`"), "<")
			names = append(names, constant)
		}
	}
	return names
}

func keysOfCode(t *testing.T) []string {
	t.Helper()
	var names []string
	add := func(found ...string) {
		for _, name := range found {
			if key.MatchString(name) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	for _, dir := range writers {
		eachConstant(t, envtest.File(dir), func(spec *ast.ValueSpec, value string) {
			if keyConstant.MatchString(spec.Names[0].Name) {
				add(value)
			}
		})
		eachFile(t, envtest.File(dir), func(file *ast.File) {
			ast.Inspect(file, func(n ast.Node) bool {
				add(keysOf(n)...)
				return true
			})
		})
	}
	return names
}

// keysOf returns the names that stand as literals where one is expected.
func keysOf(n ast.Node) []string {
	switch n := n.(type) {
	case *ast.KeyValueExpr: // Labels: map[string]string{"a": ...}, Controller: "a"
		if field := typeName(n.Key); slices.Contains(keyMaps, field) {
			return keysOfMap(n.Value)
		} else if (field == "Controller" || field == "Creator") && len(literals(n.Value)) > 0 {
			return []string{"edpm-" + literals(n.Value)[0]} // podified.New and internal/hosted make it so
		}
	case *ast.CompositeLit: // client.HasLabels{"a"}
		if slices.Contains(keyTypes, typeName(n.Type)) {
			return append(keysOfMap(n), literals(n.Elts...)...)
		}
	case *ast.IndexExpr: // pod.Labels["a"]
		if call, ok := n.X.(*ast.CallExpr); ok && slices.Contains(keyCalls, typeName(call.Fun)) || slices.Contains(keyMaps, typeName(n.X)) {
			return literals(n.Index)
		}
	case *ast.CallExpr:
		switch {
		case slices.Contains(keyCalls, typeName(n.Fun)): // client.FieldOwner("a" + b)
			return literals(n.Args...)
		case typeName(n.Fun) == "Copy" && typeName(n.Args[0]) == "labels": // maps.Copy(labels, map[string]string{"a": ...})
			return keysOfMap(n.Args[1])
		}
	}
	return nil
}

func keysOfMap(expr ast.Expr) []string {
	composite, ok := expr.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	var keys []ast.Expr
	for _, element := range composite.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			keys = append(keys, pair.Key)
		}
	}
	return literals(keys...)
}

// literals returns the values of those expressions that are, or begin with, a
// string in quotes.
func literals(exprs ...ast.Expr) []string {
	var values []string
	for _, expr := range exprs {
		if sum, ok := expr.(*ast.BinaryExpr); ok {
			expr = sum.X
		}
		if literal, ok := expr.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			value, _ := strconv.Unquote(literal.Value) // the parser accepted it
			values = append(values, value)
		}
	}
	return values
}
