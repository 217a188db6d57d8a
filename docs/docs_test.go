// Package docs_test keeps the documentation true: what it shows applies, what it
// links to is there, and what a person can meet is explained.
package docs_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/edpm-operators/edpm-operators/controllers"
	"github.com/edpm-operators/edpm-operators/internal/conditions"
	"github.com/edpm-operators/edpm-operators/internal/dataplane"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/test/docpage"
	"github.com/edpm-operators/edpm-operators/test/envtest"
	"github.com/edpm-operators/edpm-operators/webhooks"
)

// namespace of the examples.
const namespace = "openstack"

// pages are the files that are written by hand.
func pages(t *testing.T) map[string]string {
	t.Helper()
	files := []string{envtest.File("README.md"), envtest.File("CONTRIBUTING.md"), envtest.File("ansible", "README.md")}
	for _, below := range []string{"*.md", "*/*.md"} {
		found, err := filepath.Glob(envtest.File("docs", below))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(file) != "reference.md" {
			texts[file] = string(text)
		}
	}
	return texts
}

// example is one YAML document of a page.
type example struct {
	place string // page and line
	text  string
}

func examples(t *testing.T) []example {
	t.Helper()
	var found []example
	for _, page := range blocks(t) {
		for _, b := range page {
			if b.Info != "yaml" {
				continue
			}
			line := b.Line
			for _, doc := range strings.Split(b.Text, "---\n") {
				found = append(found, example{fmt.Sprintf("%s:%d", filepath.Base(b.Page), line), doc})
				line += strings.Count(doc, "\n") + 1
			}
		}
	}
	return found
}

func TestExamplesApply(t *testing.T) {
	api := startAPI(t)
	kinds := map[string]bool{}
	for _, e := range examples(t) {
		t.Run(e.place, func(t *testing.T) {
			obj := &unstructured.Unstructured{}
			if err := yaml.UnmarshalStrict([]byte(e.text), &obj.Object); err != nil {
				t.Fatalf("this is no YAML: %v", err)
			}
			if obj.GetAPIVersion() == "" {
				return // a part of an object
			}
			kinds[obj.GetKind()] = true
			if obj.GetNamespace() != namespace {
				t.Errorf("the example is in namespace %q; all others are in %q", obj.GetNamespace(), namespace)
			}
			if err := api.Create(context.Background(), obj, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
				t.Error(err)
			}
		})
	}
	for _, kind := range []string{
		"OpenStackDataPlane", "OpenStackDataPlaneRole", "OpenStackDataPlaneNode", "OpenStackDataPlaneService",
		"Nova", "NovaCell", "NovaExternalCompute", "OVNController", "OVNMetadataAgent", "OpenStackAnsibleEE", "Topology",
		"Glance", "GlanceAPI", "OpenStackControlPlane", "NovaCompute", "StorageCluster",
	} {
		if !kinds[kind] {
			t.Errorf("no page has an example of %s", kind)
		}
	}
}

// shared has the webhooks, which only startAPI serves.
var shared = envtest.Shared{Options: envtest.Options{Webhooks: true}}

func TestMain(m *testing.M) { os.Exit(envtest.Run(m, &shared)) }

// startAPI returns the API server, and serves its webhooks until the test ends.
func startAPI(t *testing.T) client.Client {
	t.Helper()
	ctrl.SetLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(io.Discard))))
	env := shared.Env(t)
	mgr, err := ctrl.NewManager(env.Config, env.ManagerOptions())
	if err != nil {
		t.Fatal(err)
	}
	if err := dataplane.Index(t.Context(), mgr.GetFieldIndexer()); err != nil {
		t.Fatal(err)
	}
	if err := webhooks.SetupAll(mgr, controllers.Operators); err != nil {
		t.Fatal(err)
	}
	env.StartManager(t, mgr)
	if err := env.Client.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	return env.Client
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func TestLinksLeadSomewhere(t *testing.T) {
	linked := pages(t)
	for _, file := range []string{envtest.File("CHANGELOG.md"), envtest.File("docs", "reference.md")} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		linked[file] = string(text)
	}
	for file, page := range linked {
		for _, m := range link.FindAllStringSubmatch(page, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			path := file
			if target != "" {
				path = filepath.Join(filepath.Dir(file), target)
			}
			if err := leads(path, anchor); err != nil {
				t.Errorf("%s: link %s: %v", filepath.Base(file), m[1], err)
			}
		}
	}
}

func leads(path, anchor string) error {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() || anchor == "" {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "#") && slug(line) == anchor {
			return nil
		}
	}
	return fmt.Errorf("no heading gives the anchor %q", anchor)
}

var punctuation = regexp.MustCompile(`[^a-z0-9 _-]`)

// slug is the anchor of a heading, as forges make it.
func slug(heading string) string {
	text := strings.TrimSpace(strings.TrimLeft(heading, "#"))
	return strings.ReplaceAll(punctuation.ReplaceAllString(strings.ToLower(text), ""), " ", "-")
}

func TestEveryConditionAndReasonIsExplained(t *testing.T) {
	explained := conditions.Names()
	names := constants(t, envtest.File("apis"), "Type", "Reason")
	names = append(names, constants(t, envtest.File("internal", "edpm"), "Phase")...)
	if len(names) < 50 {
		t.Fatalf("found only %d conditions and reasons in the code: %v", len(names), names)
	}
	for _, name := range names {
		// Converged is no reason: the condition is True then.
		if name != string(edpm.Converged) && !slices.Contains(explained, name) {
			t.Errorf("the tables of internal/conditions do not explain %s", name)
		}
	}
}

// stated are the names of functions that state a condition with a reason.
var stated = []string{"Waiting", "Failing", "Stalled", "MarkFalse", "MarkUnknown"}

// What the code says of which condition is in the tables: a reason that is
// explained for another condition is not enough.
func TestEveryReasonIsExplainedWithItsCondition(t *testing.T) {
	explained := map[string]bool{}
	for _, table := range conditions.Tables() {
		for _, c := range table.Conditions {
			for _, r := range c.Reasons {
				explained[string(c.Type)+" "+string(r.Name)] = true
			}
		}
	}
	found := 0
	for _, dir := range []string{"controllers", "internal"} {
		eachFile(t, envtest.File(dir), func(file *ast.File) {
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) < 2 || !slices.Contains(stated, typeName(call.Fun)) {
					return true
				}
				c, reason := value(t, file, call.Args[0]), value(t, file, call.Args[1])
				if c == "" || reason == "" {
					return true // computed: TestEveryConditionAndReasonIsExplained has it
				}
				if found++; !explained[c+" "+reason] {
					t.Errorf("internal/conditions does not explain reason %s of condition %s", reason, c)
				}
				return true
			})
		})
	}
	if found < 50 {
		t.Errorf("found only %d places that state a condition", found)
	}
}

// value of a constant of another package; empty for other expressions.
func value(t *testing.T, file *ast.File, expr ast.Expr) string {
	selector, ok := expr.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	name, _ := selector.X.(*ast.Ident)
	for _, i := range file.Imports {
		path, _ := strconv.Unquote(i.Path.Value) // the parser accepted it
		alias := filepath.Base(path)
		if i.Name != nil {
			alias = i.Name.Name
		}
		if name == nil || alias != name.Name {
			continue
		}
		if dir, ours := strings.CutPrefix(path, "github.com/edpm-operators/edpm-operators/"); ours {
			return constant(t, envtest.File(dir), selector.Sel.Name)
		}
		// lib-common names its constants by their values.
		return strings.TrimSuffix(strings.TrimSuffix(selector.Sel.Name, "Condition"), "Reason")
	}
	return ""
}

// constant returns the value of a string constant of a package, or "".
func constant(t *testing.T, dir, name string) (found string) {
	t.Helper()
	eachConstant(t, dir, func(spec *ast.ValueSpec, value string) {
		if spec.Names[0].Name == name {
			found = value
		}
	})
	return found
}

// A table that no page has is read by no one.
func TestEveryTableOfConditionsIsOnAPage(t *testing.T) {
	for _, table := range conditions.Tables() {
		page, _, _ := strings.Cut(table.Link, "#")
		text := pages(t)[envtest.File("docs", page)]
		if table.Name != "common" && !strings.Contains(text, "<!-- conditions of "+table.Name+",") {
			t.Errorf("docs/%s has no table of the conditions of %s", page, table.Name)
		}
		if made, err := conditions.Page(text); err != nil || made != text {
			t.Errorf("docs/%s is not what make docs makes (%v)", page, err)
		}
	}
}

// constants returns the values of the string constants of the given types.
func constants(t *testing.T, dir string, types ...string) []string {
	t.Helper()
	var values []string
	eachConstant(t, dir, func(spec *ast.ValueSpec, value string) {
		if slices.Contains(types, typeName(spec.Type)) {
			values = append(values, value)
		}
	})
	return values
}

// eachConstant finds the string constants of the code below a directory.
func eachConstant(t *testing.T, dir string, visit func(*ast.ValueSpec, string)) {
	t.Helper()
	eachFile(t, dir, func(file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
				value, _ := strconv.Unquote(literal.Value) // the parser accepted it
				visit(spec, value)
			}
			return true
		})
	})
}

// eachFile parses the files of the code below a directory.
func eachFile(t *testing.T, dir string, visit func(*ast.File)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		visit(file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func typeName(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// What of the code a page repeats, and how it is found there.
var repeated = map[string]struct {
	source, page string
	find         *regexp.Regexp
	show         string
}{
	"flags of the manager": {"cmd/manager/options.go", "docs/operations.md", regexp.MustCompile(`Var\(\S+, "([\w-]+)"`), "`--%s`"},
	"variables for images": {"internal/images/images.go", "docs/install.md", regexp.MustCompile(`"(RELATED_IMAGE_\w+)"`), "`%s`"},
}

func TestPagesNameEverything(t *testing.T) {
	for what, r := range repeated {
		t.Run(what, func(t *testing.T) {
			source, err := os.ReadFile(envtest.File(r.source))
			if err != nil {
				t.Fatal(err)
			}
			page, err := os.ReadFile(envtest.File(r.page))
			if err != nil {
				t.Fatal(err)
			}
			found := r.find.FindAllStringSubmatch(string(source), -1)
			if len(found) == 0 {
				t.Fatalf("nothing in %s looks like %s", r.source, r.find)
			}
			for _, m := range found {
				if shown := fmt.Sprintf(r.show, m[1]); !strings.Contains(string(page), shown) {
					t.Errorf("%s does not tell of %s", r.page, shown)
				}
			}
		})
	}
}

var target = regexp.MustCompile(`\bmake ((?:-s )?[a-z0-9-]+)`)

func TestCommandsExist(t *testing.T) {
	makefile, err := os.ReadFile(envtest.File("Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	inline := regexp.MustCompile("`[^`\n]+`")
	for file, page := range pages(t) {
		code := inline.FindAllString(page, -1)
		for _, b := range docpage.Parse(file, []byte(page)) {
			if b.Runs() || b.Info == notRun {
				code = append(code, b.Text)
			}
		}
		for _, text := range code {
			for _, m := range target.FindAllStringSubmatch(text, -1) {
				if name := strings.TrimPrefix(m[1], "-s "); !strings.Contains(string(makefile), "\n"+name+":") {
					t.Errorf("%s: the Makefile has no target %s", filepath.Base(file), name)
				}
			}
		}
	}
}

// shown is what a page says that tests show.
var shown = regexp.MustCompile(`(?s)Shown by\s.*?\n\n`)

var story = regexp.MustCompile(`\[([^\]]+)\]\(([^)\s]+(?:_test\.go|/test_\w+\.py))\)`)

// hasStory reports whether a file of tests has one of the name: the title of a
// story, or a function.
func hasStory(code, name string) bool {
	for _, form := range []string{`"` + name + `"`, "\nfunc " + name + "(", "    def " + name + "("} {
		if strings.Contains(code, form) {
			return true
		}
	}
	return false
}

// What a page says that a test shows, that test is there by its name.
func TestStoriesThatPagesTellOfAreThere(t *testing.T) {
	found := 0
	for file, page := range pages(t) {
		for _, m := range story.FindAllStringSubmatch(strings.Join(shown.FindAllString(page+"\n\n", -1), ""), -1) {
			code, err := os.ReadFile(filepath.Join(filepath.Dir(file), m[2]))
			if err != nil {
				t.Errorf("%s: %v", filepath.Base(file), err)
				continue
			}
			name := strings.Join(strings.Fields(m[1]), " ")
			if found++; !hasStory(string(code), name) {
				t.Errorf("%s: %s has no story %q", filepath.Base(file), m[2], name)
			}
		}
	}
	if found < 20 {
		t.Errorf("pages tell of %d stories; docs/failure-modes.md alone has more", found)
	}
}
