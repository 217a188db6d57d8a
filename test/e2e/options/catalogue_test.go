package options

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edpm-operators/edpm-operators/internal/catalogue"
	"github.com/edpm-operators/edpm-operators/internal/oslo"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/tier"
	"github.com/edpm-operators/edpm-operators/test/envtest"
)

// draws is how many assignments are compared with each release: 10,000 with E2E_LONG=1.
const draws, longDraws = 2000, 10000

// assignment of a value to an option in a file of its own.
type assigned struct {
	Section string `json:"section"`
	Key     string `json:"key"`
	Value   string `json:"value"`
}

// answer of nova in the image.
type answer struct {
	Name    string `json:"name"`
	Leaving bool   `json:"leaving"`
	Error   string `json:"error"`
}

// judged is an assignment, with its option and the verdicts of the catalogue and of nova.
type judged struct {
	assigned
	answer
	option *catalogue.Option
	// shared reports that the section has options that are listed for other sections alone.
	shared    bool
	got, want string
}

// refusedByNovaAlone reports that nova cannot read a value that the catalogue lets through.
func (j judged) refusedByNovaAlone() bool { return j.want == "refused" && j.got != "refused" }

// exceptions are the assignments of which the catalogue says something else than nova, or its
// validator, and why. Of none may the catalogue refuse what nova reads.
var exceptions = []struct {
	why string
	is  func(judged) bool
}{
	{"the value of another option is not known to the catalogue", func(j judged) bool {
		return j.refusedByNovaAlone() && referring.MatchString(j.Value)
	}},
	{"the generator does not print the type of the items of a list", func(j judged) bool {
		return j.refusedByNovaAlone() && j.option.Type == "list value"
	}},
	{"the generator does not print patterns and lengths", func(j judged) bool {
		return j.refusedByNovaAlone() && (strings.Contains(j.Error, "doesn't match regex") || strings.Contains(j.Error, "exceeds maximum length"))
	}},
	{"the generator does not print whether the case of a choice counts: a warning", func(j judged) bool {
		return j.refusedByNovaAlone() && slices.ContainsFunc(j.option.Choices, func(choice string) bool { return strings.EqualFold(choice, j.Value) })
	}},
	{"oslo-config-validator does not find sections in another case, nova does", func(j judged) bool {
		return j.Name == "unknown" && j.Section != oslo.Group(j.Section) && j.got != "unknown"
	}},
	{"oslo-config-validator does not know sections that nova makes", func(j judged) bool {
		return j.Name == "unknown" && (strings.HasPrefix(j.Section, "mdev_") || j.Section == "nova_sys_admin")
	}},
	{"oslo-config-validator does not know all options of plugins of keystoneauth", func(j judged) bool {
		return j.Name == "unknown" && j.shared
	}},
	{"the generator does not print the schemes of a URI", func(j judged) bool {
		return j.refusedByNovaAlone() && strings.Contains(j.Error, "scheme was required to be one of")
	}},
	{"an option has the former name of another", func(j judged) bool {
		return j.want == "deprecated" && j.got == "accepted" && j.Section == "key_manager" && j.Key == "auth_url"
	}},
}

var referring = regexp.MustCompile(`\$\{?[a-z_]`)

func TestVerdictsAgreeWithNova(t *testing.T) {
	switch {
	case testing.Short():
		t.Skip("the image of nova has to be loaded; -short skips that")
	case os.Geteuid() != 0:
		t.Fatal("the comparison needs root: it runs a container of the image of nova; -short skips it")
	}
	for _, image := range slices.Sorted(maps.Keys(releases)) {
		t.Run(image, func(t *testing.T) { compareVerdicts(t, image) })
	}
}

func compareVerdicts(t *testing.T, image string) {
	root, n := envtest.File(), draws
	if tier.All() {
		n = longDraws
	}
	run(t, filepath.Join(root, "test/lab/images/load.sh"), image)
	printed := inImage(t, root, image, nil, "bash", "-c", catalogue.Command)
	known, err := catalogue.ParseLog(bytes.NewReader(printed))
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	cases := draw(rand.New(rand.NewPCG(seed, 0)), known, n)
	answers := ask(t, root, image, cases)
	used, differences := make([]int, len(exceptions)), 0
	for i, c := range cases {
		j := judged{c, answers[i], optionOf(known, c), known.Options[oslo.Group(c.Section)]["auth_type"] != nil, verdictOf(t, known, c), answers[i].verdict()}
		if j.got == j.want {
			continue
		}
		if at := slices.IndexFunc(exceptions, func(e struct {
			why string
			is  func(judged) bool
		}) bool {
			return e.is(j)
		}); at >= 0 {
			used[at]++
			continue
		}
		if differences++; differences <= 40 {
			t.Errorf("[%s] %s = %q: the catalogue says %s, nova %s: %+v", c.Section, c.Key, c.Value, j.got, j.want, j.answer)
		}
	}
	t.Logf("of %d assignments %d differ; of exceptions %v", len(cases), differences, used)
}

// optionOf is the option of an assignment, an empty one if there is none.
func optionOf(known *catalogue.Catalogue, a assigned) *catalogue.Option {
	group := oslo.Group(a.Section)
	if option := known.Options[group][a.Key]; option != nil {
		return option
	}
	now := known.Former[group][a.Key]
	if option := known.Options[now.Section][now.Key]; option != nil {
		return option
	}
	return &catalogue.Option{}
}

func (a answer) verdict() string {
	switch {
	case a.Error != "":
		return "refused"
	case a.Name == "unknown":
		return "unknown"
	case a.Name == "deprecated" || a.Leaving:
		return "deprecated"
	}
	return "accepted"
}

func verdictOf(t *testing.T, known *catalogue.Catalogue, c assigned) string {
	config, err := oslo.Parse(fmt.Sprintf("[%s]\n%s = %s\n", c.Section, c.Key, c.Value))
	if err != nil {
		return "refused"
	}
	verdict := "accepted"
	for _, v := range known.Check(config) {
		switch {
		case v.Line != 2:
			t.Errorf("line %d", v.Line)
		case v.Refused:
			return "refused"
		case strings.Contains(v.Message, "does not know"):
			verdict = "unknown"
		case strings.Contains(v.Message, "deprecated"):
			verdict = "deprecated"
		}
	}
	return verdict
}

// ask returns what nova says of the assignments.
func ask(t *testing.T, root, image string, cases []assigned) []answer {
	var in bytes.Buffer
	for _, c := range cases {
		if err := json.NewEncoder(&in).Encode(c); err != nil {
			t.Fatal(err)
		}
	}
	out := inImage(t, root, image, &in, "python3", "-W", "ignore", "/compare/verdicts.py")
	var answers []answer
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() && lines.Text() != "ready" {
	}
	for lines.Scan() {
		a := answer{}
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		answers = append(answers, a)
	}
	if len(answers) != len(cases) {
		t.Fatalf("%d answers for %d assignments", len(answers), len(cases))
	}
	return answers
}

func inImage(t *testing.T, root, image string, in *bytes.Buffer, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "podman", append([]string{"--runtime", "runc", "run", "--rm", "--interactive", "--network", "none", "--user", "root", "--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096",
		"--volume", filepath.Join(root, "ansible/roles/edpm_service/files") + ":/check:ro", "--volume", filepath.Join(root, "test/e2e/options/testdata") + ":/compare:ro",
		"--env", "PYTHONPATH=/check", "--env", "PYTHONDONTWRITEBYTECODE=1", "localhost/edpm-" + image + ":latest"}, args...)...)
	var errOut bytes.Buffer
	cmd.Stderr, cmd.WaitDelay = &errOut, 5*time.Second
	if in != nil {
		cmd.Stdin = in
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", args[0], err, errOut.String())
	}
	return out
}

// draw mutates names and values of the options of an image, by their type.
func draw(r *rand.Rand, known *catalogue.Catalogue, n int) []assigned {
	var all []catalogue.Name
	for section, options := range known.Options {
		for key := range options {
			all = append(all, catalogue.Name{Section: section, Key: key})
		}
	}
	for section, names := range known.Former {
		for key := range names {
			all = append(all, catalogue.Name{Section: section, Key: key})
		}
	}
	slices.SortFunc(all, func(a, b catalogue.Name) int { return strings.Compare(a.String(), b.String()) })
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	cases := make([]assigned, n)
	for i := range cases {
		name := all[i%len(all)]
		cases[i] = assigned{Section: name.Section, Key: name.Key}
		cases[i].Value = value(r, optionOf(known, cases[i]))
		if r.IntN(10) == 0 {
			cases[i].mutateName(r)
		}
	}
	return cases
}

// values of types, right and wrong.
var drawn = map[string][]string{
	"boolean value":        {"true", "False", "yes", "0", "1", "2", "maybe", "yes please", "truee", "' true'", "on", "OFF"},
	"integer value":        {"0", "1", "-1", "-2", "256", "512", "1024", "65535", "65536", "007", "1_000", "_1", "1__0", "0x10", "1.0", "1e3", "ten", " 5 ", "'5 '", "+5", "--5", "٣", "99999999999999999999", "-99999999999999999999", "20", "29", "101"},
	"floating point value": {"0", "1.5", ".5", "5.", "-0.1", "1e400", "-1e400", "inf", "-inf", "NaN", "1_0.5", "0x1p3", "1,5", "one", "1e", "'1.0 '", "²", "1.5.1", "-1", "1e-5"},
	"dict value":           {"a:b", "a", "a:b,c", "a:b,c:d", "a:b,a:c", ":b", "a:", "a,b:c", ",", "a:b,", "a=b", "node:0,size:2048,count:64"},
	"list value":           {"a,b", "", "1,2,x", ",", "[a]", "a b", "1-5,^3", "*", "200", "v1,v2"},
	"multi valued":         {"a", "", "{}", "$nothing", "a:b"},
	"IP address value":     {"192.0.2.1", "::1", "1.2.3", "fe80::1%eth0", "example.org", "01.2.3.4", "::ffff:192.0.2.1"},
	"uri value":            {"http://h", "http://h:80/p", "h", "http://", "//h", "http://u:p@h/", "http://[::1]:80", "http://h h/", "unix:///s", "rabbit://h", "http://h:port/", "http://h/a b", "http://h?x", "http://h_x/", "http://ü/", "http://h:80:80/", "1http://h", "http://300.1.1.1/", "http://[::g]/", "http://h/[", "http://h/%zz", "https://h/ü"},
	"host address value":   {"h", "h_x", "192.0.2.1", "::1", "::", "1.2.3", "h.example.org.", "-h", "h-", "h.1", "a..b", ".a", strings.Repeat("a", 64), strings.Repeat("a.", 127) + "a", "fe80::1%lo", "0.0.0.0", "hſ", "1-2", "h h"},
}

var anyValues = []string{"", "''", "x", "$my_ip", "${my_ip}", "$nothing", "${libvirt.virt_type}", "$$5", `\$x`, "$5", "pa$$word", "pa$word", "$state_path/x", "${nothing.here}", "$libvirt", "a%b", "x\n  y", "'quoted", "\"q\"", "é", "${my_ip", "$virt_type", "$my_ip.x"}

func value(r *rand.Rand, o *catalogue.Option) string {
	kind := o.Type
	switch kind {
	case "port value":
		kind = "integer value"
	case "host domain value", "hostname value":
		kind = "host address value"
	}
	choices := slices.Concat(o.Choices, drawn[kind])
	if len(o.Choices) > 0 {
		choice := o.Choices[r.IntN(len(o.Choices))]
		choices = append(choices, strings.ToUpper(choice), choice+"x", strings.TrimSuffix(choice, "e"), choice+" "+choice)
	}
	for _, limit := range []*float64{o.Min, o.Max} {
		if limit != nil {
			choices = append(choices, fmt.Sprint(*limit), fmt.Sprint(*limit-1), fmt.Sprint(*limit+1))
		}
	}
	if len(choices) == 0 || r.IntN(8) == 0 {
		choices = anyValues
	}
	return choices[r.IntN(len(choices))]
}

// mutateName makes a mistake in the name of an option or section.
func (a *assigned) mutateName(r *rand.Rand) {
	switch at := r.IntN(len(a.Key)); r.IntN(6) {
	case 0:
		a.Key = a.Key[:at] + a.Key[at:at+1] + a.Key[at:]
	case 1:
		a.Key = a.Key[:at] + "x" + a.Key[at+1:]
	case 2:
		a.Key = strings.ToUpper(a.Key)
	case 3:
		a.Section = strings.ToUpper(a.Section)
	case 4:
		a.Section += "x"
	case 5:
		a.Section = []string{"DEFAULT", "libvirt", "mdev_nvidia-35", "nova_sys_admin", "default", "keystone_authtoken", "database"}[r.IntN(7)]
	}
}
