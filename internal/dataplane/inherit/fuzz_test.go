package inherit

import (
	"encoding/json"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// FuzzVars looks for ansibleVars that crash the manager, that cannot be written
// into an inventory, or whose error quotes them.
func FuzzVars(f *testing.F) {
	for _, seed := range []string{"a: 1", "a: &a {b: 1}\nc: *a", "- a", "a: [", "\x00", "? {a: b}\n: c", "1: 2\ntrue: 3", ".nan: .inf"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		raw, err := json.Marshal(text + "\nhunter2hunter2: x")
		if err != nil {
			t.Fatal(err)
		}
		vars, err := Vars(&apiextensionsv1.JSON{Raw: raw})
		if err != nil {
			if strings.Contains(err.Error(), "hunter2hunter2") {
				t.Errorf("%q: the error quotes the text: %v", text, err)
			}
			return
		}
		if _, err := json.Marshal(vars); err != nil {
			t.Errorf("%q: what was read cannot be written: %v", text, err)
		}
	})
}
