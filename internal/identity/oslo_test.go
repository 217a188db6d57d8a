package identity

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/edpm-operators/edpm-operators/test/needs"
)

// spellings of an assignment to an option, of which oslo.config takes some for the option.
func spellings(section, key string) []string {
	var texts []string
	for _, s := range []string{section, strings.ToLower(section), strings.ToUpper(section), strings.Title(section), section + " ", " " + section} { //nolint:staticcheck // ASCII
		for _, k := range []string{key, strings.ToUpper(key), strings.ReplaceAll(key, "_", "-"), key + " \u00a0", key + "s"} {
			for _, form := range []string{"[%s]\n%s = x\n", "[%s]\r\n%s:x\r\n", "[%s]\n%s =\n  x\n", "[%s]\n%s=\n", "[%s]\n# %s = x\n", "[%s]\na = b\n %s = x\n", "[%s]\n[other]\n%s = x\n"} {
				texts = append(texts, fmt.Sprintf(form, s, k))
			}
		}
	}
	return texts
}

type question struct {
	Text    string   `json:"text"`
	Options [][3]any `json:"options"`
}

// EDPM_PYTHON is the interpreter that has oslo.config, by default /usr/bin/python3.
func TestFindsWhatOsloConfigFinds(t *testing.T) {
	python := cmp.Or(os.Getenv("EDPM_PYTHON"), "/usr/bin/python3")
	needs.Oslo(t, python)
	var questions []question
	var found []bool
	var in bytes.Buffer
	seen := map[name]bool{}
	for _, o := range Options() {
		if seen[o.name] || o.key == "config_source" { // which oslo.config has itself
			continue
		}
		seen[o.name] = true
		also := [][2]string{}
		for _, n := range o.also {
			also = append(also, [2]string{n.section, n.key})
		}
		for _, n := range append([]name{o.name}, o.also...) {
			for _, text := range spellings(n.section, n.key) {
				q := question{text, [][3]any{{o.section, o.key, also}}}
				questions = append(questions, q)
				found = append(found, o.isIn(t, text))
				if err := json.NewEncoder(&in).Encode(q); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	cmd := exec.CommandContext(t.Context(), python, "testdata/read.py")
	cmd.Stdin, cmd.Stderr = &in, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	answers, agreed := json.NewDecoder(bytes.NewReader(out)), map[bool]int{}
	for i, q := range questions {
		var read []bool
		if err := answers.Decode(&read); err != nil {
			t.Fatal(err)
		}
		if agreed[read[0]]++; read[0] != found[i] {
			t.Errorf("%q sets %v: %v for oslo.config, %v here", q.Text, q.Options[0][:2], read[0], found[i])
		}
	}
	if agreed[true] < 100 || agreed[false] < 100 {
		t.Errorf("want hundreds of texts that set an option, and that do not: %v", agreed)
	}
}

// isIn reports whether a text sets the option, by any of its names.
func (o Option) isIn(t *testing.T, text string) bool {
	config := mustParse(t, text)
	for _, n := range append([]name{o.name}, o.also...) {
		for _, f := range Find(o.Services[0], config) {
			if strings.Contains(f.Message, fmt.Sprintf("[%s] %s ", n.section, n.key)) {
				return true
			}
		}
	}
	return false
}
