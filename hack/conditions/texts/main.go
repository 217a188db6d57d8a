// Command texts reads what conditions and reasons mean, and what helps, from the comments
// of their constants, and writes it as Go to internal/conditions. The comment of a reason
//
//	// CellMissingReason : the NovaCell does not exist. Remedy: create it.
//
// gives both; that of a condition says when it is True. Further paragraphs are for readers
// of the code only.
package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/format"
	"go/token"
	"go/types"
	"log"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"golang.org/x/tools/go/packages"
)

// Types of the constants.
const (
	conditionType = "github.com/openstack-k8s-operators/lib-common/modules/common/condition.Type"
	reasonType    = "github.com/openstack-k8s-operators/lib-common/modules/common/condition.Reason"
	phaseType     = "github.com/edpm-operators/edpm-operators/internal/edpm.Phase"
)

const output = "internal/conditions/zz_generated.texts.go"

func main() {
	log.SetFlags(0)
	log.SetPrefix("texts: ")
	found, err := read("./apis/...", "./internal/edpm")
	if err != nil {
		log.Fatal(err)
	}
	code, err := render(found)
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(output, code, 0o644); err != nil {
		log.Fatal(err)
	}
}

// text of the comment of a constant. A condition has no remedy.
type text struct {
	Var, Value, Means, Remedy string
}

// read returns the texts of the constants of packages.
func read(patterns ...string) ([]text, error) {
	loaded, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax}, patterns...)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(loaded, func(a, b *packages.Package) int { return cmp.Compare(a.PkgPath, b.PkgPath) })
	var found []text
	var errs []error
	for _, p := range loaded {
		for _, e := range p.Errors {
			errs = append(errs, e)
		}
		for _, file := range p.Syntax {
			for _, decl := range file.Decls {
				texts, err := readDecl(p, decl)
				found, errs = append(found, texts...), append(errs, err)
			}
		}
	}
	return found, errors.Join(errs...)
}

func readDecl(p *packages.Package, decl ast.Decl) ([]text, error) {
	constants, ok := decl.(*ast.GenDecl)
	if !ok || constants.Tok != token.CONST {
		return nil, nil
	}
	var found []text
	var errs []error
	for _, s := range constants.Specs {
		spec := s.(*ast.ValueSpec)
		if len(spec.Values) != 1 {
			continue
		}
		if _, literal := spec.Values[0].(*ast.BasicLit); !literal {
			continue // another name of a constant that has its text elsewhere
		}
		doc := spec.Doc
		if !constants.Lparen.IsValid() {
			doc = constants.Doc
		}
		name := spec.Names[0]
		t, err := readConstant(p.Types.Scope().Lookup(name.Name).(*types.Const), doc.Text())
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", p.Fset.Position(name.Pos()), err))
		case t.Var != "":
			found = append(found, t)
		}
	}
	return found, errors.Join(errs...)
}

// readConstant returns the text of a constant, or none if it is not of a condition.
func readConstant(c *types.Const, comment string) (text, error) {
	condition := false
	switch types.TypeString(c.Type(), nil) {
	case conditionType:
		condition = true
	case reasonType:
	case phaseType:
		if !strings.Contains(comment, "Remedy:") {
			return text{}, nil // a condition is True in this phase
		}
	default:
		return text{}, nil
	}
	t, err := parse(c.Name(), comment, condition)
	t.Var, t.Value = variable(c), constant.StringVal(c.Val())
	return t, err
}

// parse returns what a comment says about its constant.
func parse(name, comment string, condition bool) (text, error) {
	paragraph, _, _ := strings.Cut(comment, "\n\n")
	sentence, named := strings.CutPrefix(strings.Join(strings.Fields(paragraph), " "), name+" : ")
	means, remedy, remedied := strings.Cut(strings.TrimSuffix(sentence, "."), ". Remedy: ")
	switch {
	case condition && (!named || means == "" || remedied):
		return text{}, fmt.Errorf("the comment of condition %s is not %q", name, name+" : when it is True.")
	case !condition && (!named || means == "" || remedy == ""):
		return text{}, fmt.Errorf("the comment of reason %s is not %q", name, name+" : what it means. Remedy: what to do.")
	}
	return text{Means: means, Remedy: remedy}, nil
}

var version = regexp.MustCompile(`^v\d`)

// variable names a constant in the generated code: apis/nova/v1beta1's CellMissingReason is
// novaCellMissing.
func variable(c *types.Const) string {
	dir := c.Pkg().Path()
	if version.MatchString(path.Base(dir)) {
		dir = path.Dir(dir)
	}
	return path.Base(dir) + strings.TrimSuffix(strings.TrimSuffix(c.Name(), "Reason"), "Condition")
}

var file = template.Must(template.New("").Parse(`// Code generated from the comments of constants by hack/conditions/texts: run make generate. DO NOT EDIT.

package conditions

var (
{{- range .}}
	{{.Var}} = {{if .Remedy}}Reason{ {{- printf "%q, %q, %q" .Value .Means .Remedy -}} }{{else}}Condition{Type: {{printf "%q, Means: %q" .Value .Means}}}{{end}}
{{- end}}
)
`))

func render(texts []text) ([]byte, error) {
	var code bytes.Buffer
	if err := file.Execute(&code, texts); err != nil {
		return nil, err
	}
	return format.Source(code.Bytes())
}
