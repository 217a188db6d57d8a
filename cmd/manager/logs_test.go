package main

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/edpm-operators/edpm-operators/test/envtest"
)

// message is a call that writes to the log.
type message struct {
	place, level, text string
	keys               []string
}

// messages of the packages that run in the manager.
func messages(t *testing.T) []message {
	t.Helper()
	var found []message
	files := token.NewFileSet()
	for _, dir := range []string{"cmd/manager", "controllers", "internal", "webhooks"} {
		err := filepath.WalkDir(envtest.File(dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					found = append(found, messageOf(files, call)...)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// messageOf returns the message of a call of Info or Error of a logger: what is
// called ends with Log, LoggerFrom(ctx), FromContext(ctx) or V(n).
func messageOf(files *token.FileSet, call *ast.CallExpr) []message {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"Info", "Error"}, method.Sel.Name) || !isLogger(method.X) {
		return nil
	}
	m := message{place: files.Position(call.Pos()).String(), level: method.Sel.Name}
	args := call.Args
	if m.level == "Error" {
		args = args[1:]
	}
	m.text = literal(args[0])
	for i := 1; i < len(args); i += 2 {
		m.keys = append(m.keys, literal(args[i]))
	}
	return []message{m}
}

func isLogger(x ast.Expr) bool {
	if call, ok := x.(*ast.CallExpr); ok {
		x = call.Fun
	}
	s, ok := x.(*ast.SelectorExpr)
	return ok && slices.Contains([]string{"Log", "LoggerFrom", "FromContext", "V"}, s.Sel.Name)
}

func literal(x ast.Expr) string {
	l, ok := x.(*ast.BasicLit)
	if !ok {
		return ""
	}
	text, _ := strconv.Unquote(l.Value) // empty for what is no text
	return text
}

// TestLogMessages : a capital first, no period, and what varies in keys: the
// rules of structured logging in Kubernetes,
// https://github.com/kubernetes/community/blob/master/contributors/devel/sig-instrumentation/migration-to-structured-logging.md
func TestLogMessages(t *testing.T) {
	found := messages(t)
	if len(found) < 5 {
		t.Fatalf("found only %d messages", len(found))
	}
	text, key := regexp.MustCompile(`^[A-Z][^%]*[^.!:%]$`), regexp.MustCompile(`^[a-z][A-Za-z]*$`)
	for _, m := range found {
		if !text.MatchString(m.text) || m.level == "Error" && !strings.HasPrefix(m.text, "Failed to ") {
			t.Errorf("%s: message %q should be constant, begin with a capital, of an error with \"Failed to\", and end without a period", m.place, m.text)
		}
		for _, k := range m.keys {
			if !key.MatchString(k) {
				t.Errorf("%s: key %q should be in lowerCamelCase", m.place, k)
			}
		}
	}
}

func TestEverythingGoesToOneLog(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "log")) // the other tests write to it as well
	if err != nil {
		t.Fatal(err)
	}
	setLogger(zap.NewRaw(zap.WriteTo(out)))
	klog.InfoS("Said by client-go", "key", "value")
	log.Print("said by net/http")
	written, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{}
	for lines := json.NewDecoder(bytes.NewReader(written)); lines.More(); {
		var line struct{ Level, TS, Msg string }
		if err := lines.Decode(&line); err != nil {
			t.Fatalf("the log is not JSON: %v", err)
		}
		if line.Level == "" || line.TS == "" {
			t.Errorf("%q has no level or no time", line.Msg)
		}
		texts = append(texts, line.Msg)
	}
	if diff := cmp.Diff([]string{"Said by client-go", "said by net/http"}, texts); diff != "" {
		t.Errorf("the log differs (-want +got):\n%s", diff)
	}
}
