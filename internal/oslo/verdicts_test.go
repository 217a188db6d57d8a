package oslo

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/edpm-operators/edpm-operators/test/needs"
)

// Settings of these tests, all optional:
//
//	EDPM_PYTHON          interpreter that has oslo.config (/usr/bin/python3)
//	EDPM_UPDATE=1        rewrite the recorded verdicts
//	EDPM_OSLO_MUTATIONS  how many mutations to compare (2500)
//	EDPM_OSLO_SEED       seed of the mutations (1)
const recorded = "testdata/verdicts.golden.jsonl"

type snippet struct{ name, text string }

// verdict is what testdata/verdicts.py prints for a file.
type verdict struct {
	OK       bool
	Kind     string       `json:",omitempty"` // "parse" or "decode"
	Line     int          `json:",omitempty"`
	Error    string       `json:",omitempty"`
	Sections []sectionSet `json:",omitempty"`
}

type sectionSet struct {
	Name    string
	Options []optionSet `json:",omitempty"`
}

type optionSet struct {
	Key    string
	Values []string
	Last   string `json:",omitempty"` // only of merged files
}

type request struct {
	Files [][]byte `json:"files"`
}

type answer struct {
	Files  []verdict
	Merged []sectionSet
}

// corpus reads the snippets in testdata/corpus.
func corpus(t testing.TB) []snippet {
	t.Helper()
	paths, err := filepath.Glob("testdata/corpus/*.conf")
	if err != nil || len(paths) < 240 {
		t.Fatalf("corpus has %d snippets, err %v", len(paths), err)
	}
	var snippets []snippet
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		snippets = append(snippets, snippet{filepath.Base(path), string(text)})
	}
	return snippets
}

// values drops the lines from a Config, as oslo.config keeps none.
func values(cfg *Config) []sectionSet {
	var sets []sectionSet
	for _, s := range cfg.sections {
		set := sectionSet{Name: s.Name}
		for _, o := range s.Options {
			option := optionSet{Key: o.Key}
			for _, v := range o.Values {
				option.Values = append(option.Values, v.Text)
			}
			set.Options = append(set.Options, option)
		}
		sets = append(sets, set)
	}
	return sets
}

// disagreement tells how Parse differs from a verdict, "" if it does not.
func disagreement(text string, want verdict) string {
	cfg, err := Parse(text)
	errs, _ := err.(Errors)
	switch {
	case want.OK && err != nil:
		return fmt.Sprintf("Parse fails with %v, oslo.config accepts", err)
	case !want.OK && err == nil:
		return fmt.Sprintf("Parse accepts, oslo.config fails at line %d: %s", want.Line, want.Error)
	case want.OK && !slices.EqualFunc(values(cfg), want.Sections, sameSection):
		return fmt.Sprintf("Parse finds %q, oslo.config finds %q", values(cfg), want.Sections)
	case !want.OK && firstLine(errs, want.Kind) != want.Line:
		return fmt.Sprintf("Parse fails first at line %d, oslo.config at %d: %s: %v", firstLine(errs, want.Kind), want.Line, want.Error, err)
	}
	return ""
}

// sameSection compares empty and absent options as equal.
func sameSection(a, b sectionSet) bool {
	return a.Name == b.Name && slices.EqualFunc(a.Options, b.Options,
		func(a, b optionSet) bool { return reflect.DeepEqual(a, b) })
}

// firstLine is the line at which oslo.config would stop. It decodes the whole
// file before it reads the first line, so bad bytes come before all else.
func firstLine(errs Errors, kind string) int {
	for _, e := range errs {
		if kind == "parse" || e.Reason == reasonNotUTF8 {
			return e.osloLine
		}
	}
	return 0
}

func TestVerdictsAgreeWithRealOsloConfig(t *testing.T) {
	snippets := corpus(t)
	originals := len(snippets)
	count, seed := setting(t, "EDPM_OSLO_MUTATIONS", 2500), setting(t, "EDPM_OSLO_SEED", 1)
	t.Logf("%d snippets, %d mutations with EDPM_OSLO_SEED=%d", originals, count, seed)
	rng := rand.New(rand.NewPCG(uint64(seed), 0))
	for i := range count {
		snippets = append(snippets, snippet{fmt.Sprintf("mutation %d", i), mutate(rng, snippets[:originals])})
	}
	var requests []request
	for _, s := range snippets {
		requests = append(requests, request{Files: [][]byte{[]byte(s.text)}})
	}
	answers := askOsloConfig(t, requests)
	good := 0
	for i, s := range snippets {
		if d := disagreement(s.text, answers[i].Files[0]); d != "" {
			t.Errorf("%s: %q\n%s", s.name, s.text, d)
		}
		if answers[i].Files[0].OK {
			good++
		}
	}
	t.Logf("%d compared: %d good, %d bad", len(snippets), good, len(snippets)-good)
	compareRecorded(t, snippets[:originals], answers)
}

// TestVerdictsAgreeWithRecordedOnes checks the corpus without Python.
func TestVerdictsAgreeWithRecordedOnes(t *testing.T) {
	text, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	snippets := corpus(t)
	if len(lines) != len(snippets) {
		t.Fatalf("%d verdicts for %d snippets; run with EDPM_UPDATE=1", len(lines), len(snippets))
	}
	for i, s := range snippets {
		t.Run(s.name, func(t *testing.T) {
			var want verdict
			if err := json.Unmarshal([]byte(lines[i]), &want); err != nil {
				t.Fatal(err)
			}
			if d := disagreement(s.text, want); d != "" {
				t.Errorf("%q\n%s", s.text, d)
			}
		})
	}
}

func TestMergeAgreesWithRealOsloConfig(t *testing.T) {
	seed := setting(t, "EDPM_OSLO_SEED", 1)
	t.Logf("EDPM_OSLO_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(uint64(seed), 1))
	var good []*Config
	for _, s := range corpus(t) {
		if cfg, err := Parse(s.text); err == nil {
			good = append(good, cfg)
		}
	}
	var merged []*Config
	var requests []request
	for range 500 {
		var files []*Config
		var r request
		for range 1 + rng.IntN(4) {
			cfg := good[rng.IntN(len(good))]
			files = append(files, cfg)
			r.Files = append(r.Files, []byte(cfg.Text()))
		}
		merged = append(merged, Merge(files...))
		requests = append(requests, r)
	}
	for i, a := range askOsloConfig(t, requests) {
		checkMerged(t, merged[i], a.Merged)
	}
}

func checkMerged(t *testing.T, cfg *Config, want []sectionSet) {
	for _, s := range want {
		for _, o := range s.Options {
			got := cfg.Get(s.Name, o.Key)
			if !slices.Equal(got, o.Values) || got[len(got)-1] != o.Last {
				t.Errorf("%q: [%s] %s = %q, oslo.config has %q and %q", cfg.Text(), s.Name, o.Key, got, o.Values, o.Last)
			}
		}
	}
}

// setting reads a number from the environment.
func setting(t *testing.T, name string, otherwise int) int {
	n, err := strconv.Atoi(cmp.Or(os.Getenv(name), strconv.Itoa(otherwise)))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// askOsloConfig lets testdata/verdicts.py answer the requests.
func askOsloConfig(t *testing.T, requests []request) []answer {
	t.Helper()
	python := cmp.Or(os.Getenv("EDPM_PYTHON"), "/usr/bin/python3")
	needs.Oslo(t, python)
	var in, errOut bytes.Buffer
	encoder := json.NewEncoder(&in)
	for _, r := range requests {
		if err := encoder.Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "testdata/verdicts.py")
	// The services run in UTF-8 locales; the machine of this test may not.
	cmd.Env = append(os.Environ(), "PYTHONUTF8=1")
	cmd.Stdin, cmd.Stderr = &in, &errOut
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("verdicts.py: %v\n%s", err, errOut.String())
	}
	return decodeAnswers(t, out, len(requests))
}

func decodeAnswers(t *testing.T, out []byte, count int) []answer {
	t.Helper()
	var answers []answer
	decoder := json.NewDecoder(bytes.NewReader(out))
	for decoder.More() {
		var a answer
		if err := decoder.Decode(&a); err != nil {
			t.Fatal(err)
		}
		answers = append(answers, a)
	}
	if len(answers) != count {
		t.Fatalf("%d answers to %d requests", len(answers), count)
	}
	return answers
}

// compareRecorded holds the recorded verdicts to the real ones.
func compareRecorded(t *testing.T, snippets []snippet, answers []answer) {
	t.Helper()
	var now bytes.Buffer
	w := bufio.NewWriter(&now)
	for i := range snippets {
		line, err := json.Marshal(answers[i].Files[0])
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(w, "%s\n", line)
	}
	w.Flush()
	if os.Getenv("EDPM_UPDATE") == "1" {
		if err := os.WriteFile(recorded, now.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.ReadFile(recorded)
	if err != nil || !bytes.Equal(before, now.Bytes()) {
		t.Errorf("%s is not what oslo.config says now (err %v); run with EDPM_UPDATE=1 and look at the diff", recorded, err)
	}
}

// pieces are what mutations insert: all that any rule of the parser is about.
var pieces = []string{
	"[", "]", "[]", "[a]", "[DEFAULT]\n", "[a", "=", ":", " = ", "# ", ";", "\"", "'", "\"\"", "\\",
	" ", "  ", "\t", "\n", "\n\n", "\r", "\r\n", "\n ", "\n\t", "\n\n  ", "k = v\n", "k:v\n", "x\n", "k",
	"\x00", "\x0b", "\x0c", "\x1b", "\x1c", "\x1d", "\x1e", "\x1f", "\x7f", "\u0085", "\u00a0", "\u1680",
	"\u180e", "\u2003", "\u200b", "\u2028", "\u2029", "\u202f", "\u205f", "\u2060", "\u3000", "\ufeff",
	"é", "日", "🔥", "\u0301", "\xff", "\xe9", "\xc2", "\xed\xa0\x80", "\xc0\x80",
}

// mutate changes a snippet in one to four places.
func mutate(rng *rand.Rand, snippets []snippet) string {
	text := snippets[rng.IntN(len(snippets))].text
	for range 1 + rng.IntN(4) {
		at := rng.IntN(len(text) + 1)
		switch rng.IntN(6) {
		case 0, 1, 2:
			text = text[:at] + pieces[rng.IntN(len(pieces))] + text[at:]
		case 3:
			text = text[:at] + text[min(len(text), at+1+rng.IntN(4)):]
		case 4:
			text = mutateLines(rng, text)
		default:
			other := snippets[rng.IntN(len(snippets))].text
			text = text[:at] + other[rng.IntN(len(other)+1):]
		}
	}
	return text
}

// mutateLines drops, doubles, moves, indents or unindents a line.
func mutateLines(rng *rand.Rand, text string) string {
	lines := strings.SplitAfter(text, "\n")
	i, j := rng.IntN(len(lines)), rng.IntN(len(lines))
	switch rng.IntN(5) {
	case 0:
		lines = slices.Delete(lines, i, i+1)
	case 1:
		lines = slices.Insert(lines, j, lines[i])
	case 2:
		lines[i], lines[j] = lines[j], lines[i]
	case 3:
		lines[i] = pieces[rng.IntN(len(pieces))] + lines[i]
	default:
		lines[i] = strings.TrimLeft(lines[i], " \t")
	}
	return strings.Join(lines, "")
}
