package recap

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
)

func zipped(text string) string {
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

func TestParse(t *testing.T) {
	type hosts = []ansibleeev1.HostStatus
	for name, c := range map[string]struct {
		message string
		want    Recap
	}{
		"no hosts": {`{"v":1,"hosts":{}}`, Recap{}},
		"hosts in order of their names": {
			`{"v":1,"hosts":{"b":[1,2,3,4,5],"a":[0,0,0,1,0,"no route"]}}`,
			Recap{Hosts: hosts{{Name: "a", Unreachable: 1, Message: "no route"}, {Name: "b", OK: 1, Changed: 2, Failed: 3, Unreachable: 4, Skipped: 5}}},
		},
		"compressed hosts": {
			fmt.Sprintf(`{"v":1,"z":%q}`, zipped(`{"a":[7,0,0,0,1]}`)), Recap{Hosts: hosts{{Name: "a", OK: 7, Skipped: 1}}},
		},
		"an error without a play": {`{"v":1,"hosts":{},"error":"no inventory"}`, Recap{Error: "no inventory"}},
		"fields of a later callback": {
			`{"v":1,"steps":1,"hosts":{"a":[1,0,0,0,0,"","",1,1,1,0,[],0,{"new":1}]},"more":true}`, Recap{Hosts: hosts{{Name: "a", OK: 1, StepsDone: ptr.To[int32](1), StepsBegun: ptr.To[int32](1)}}},
		},
		"what differs in a check": {
			`{"v":1,"steps":2,"hosts":{"a":[9,3,0,0,0,"","",2,1,null,0,[[1,"Write hosts","/etc/hosts","/etc/b"],[2,"Run nova\u001b"],[2,-4],[7,3],["x"],[]]]}}`,
			Recap{Hosts: hosts{{Name: "a", OK: 9, Changed: 3, StepsDone: ptr.To[int32](2), Differences: []ansibleeev1.StepDifference{
				{Step: 1, Difference: common.Difference{Task: "Write hosts", Names: []string{"/etc/hosts", "/etc/b"}}},
				{Step: 2, Difference: common.Difference{Task: "Run nova "}}, {Step: 2}, {Step: 7, Difference: common.Difference{Omitted: 3}}, {Step: 1}, {Step: 1},
			}}}},
		},
		"which hosts reached the end": {
			`{"v":1,"steps":1,"hosts":{"a":[1,0,0,0,0],"b":[1,0,1,0,0,"no"],"c":[1,0,0,0,0,"aborted","",0],"d":[0,0,0,1,0,"no route","",0,0],"e":[0,0,0,1,0,"lost"]}}`,
			Recap{Hosts: hosts{
				{Name: "a", OK: 1, StepsDone: ptr.To[int32](1)}, {Name: "b", OK: 1, Failed: 1, Message: "no", StepsDone: ptr.To[int32](0)},
				{Name: "c", OK: 1, Message: "aborted", StepsDone: ptr.To[int32](0)},
				{Name: "d", Unreachable: 1, Message: "no route", StepsDone: ptr.To[int32](0), NotConnected: true},
				{Name: "e", Unreachable: 1, Message: "lost", StepsDone: ptr.To[int32](0)},
			}},
		},
		"a host that has done some of several steps before it failed": {
			`{"v":1,"steps":3,"hosts":{"a":[9,0,1,0,0,"no","",2],"b":[9,0,0,0,0]}}`,
			Recap{Hosts: hosts{{Name: "a", OK: 9, Failed: 1, Message: "no", StepsDone: ptr.To[int32](2)}, {Name: "b", OK: 9, StepsDone: ptr.To[int32](3)}}},
		},
		"a host that took part in steps after one that it has not done": {
			`{"v":1,"steps":3,"hosts":{"a":[9,0,1,0,0,"no","",0,1,3]}}`,
			Recap{Hosts: hosts{{Name: "a", OK: 9, Failed: 1, Message: "no", StepsDone: ptr.To[int32](0), StepsBegun: ptr.To[int32](3)}}},
		},
		"a host that fails each time with the same inputs": {
			`{"v":1,"steps":2,"hosts":{"a":[9,0,1,0,0,"no","",1,1,2,1],"b":[9,0,0,1,0,"gone","",1,1,2,1],"c":[9,0,1,0,0,"no","",1,1,2,0]}}`,
			Recap{Hosts: hosts{
				{Name: "a", OK: 9, Failed: 1, Message: "no", StepsDone: ptr.To[int32](1), StepsBegun: ptr.To[int32](2), Refused: true},
				{Name: "b", OK: 9, Unreachable: 1, Message: "gone", StepsDone: ptr.To[int32](1), StepsBegun: ptr.To[int32](2)},
				{Name: "c", OK: 9, Failed: 1, Message: "no", StepsDone: ptr.To[int32](1), StepsBegun: ptr.To[int32](2)},
			}},
		},
		"a host that has guests and must be empty": {
			`{"v":1,"steps":2,"hosts":{"a":[9,0,1,0,0,"no","",1,1,null,0,[],1],"b":[9,0,0,1,0,"gone","",1,1,null,0,[],1]}}`,
			Recap{Hosts: hosts{
				{Name: "a", OK: 9, Failed: 1, Message: "no", StepsDone: ptr.To[int32](1), HostNotEmpty: true},
				{Name: "b", OK: 9, Unreachable: 1, Message: "gone", StepsDone: ptr.To[int32](1)},
			}},
		},
		"the key of a host that was met": {
			`{"v":1,"hosts":{"a":[1,0,0,0,0,"","` + key + `"]}}`, Recap{Hosts: hosts{{Name: "a", OK: 1, HostKey: key}}},
		},
		"a message in another script": {`{"v":1,"hosts":{"a":[0,0,1,0,0,"kaputt – ü…"]}}`, Recap{Hosts: hosts{{Name: "a", Failed: 1, Message: "kaputt – ü…"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(c.message)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the recap differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ message, want string }{
		"a log":                      {"PLAY RECAP ****", "not JSON"},
		"a message that was cut":     {`{"v":1,"hosts":{"a":[1,0`, "not JSON"},
		"a version that is unknown":  {`{"v":2,"hosts":{}}`, "version 2, and only 1 is supported"},
		"no version":                 {`{"hosts":{}}`, "version 0"},
		"too few fields":             {`{"v":1,"hosts":{"a":[1,2]}}`, "host a has 2 fields and needs 5"},
		"a host that is null":        {`{"v":1,"hosts":{"a":null}}`, "host a has 0 fields"},
		"a count that is text":       {`{"v":1,"hosts":{"a":[1,"2",0,0,0]}}`, "field 2 of the recap of host a is not a count"},
		"a count that is a fraction": {`{"v":1,"hosts":{"a":[1.5,0,0,0,0]}}`, "field 1"},
		"a count that is too large":  {`{"v":1,"hosts":{"a":[1,0,0,0,4294967296]}}`, "field 5"},
		"a message that is no text":  {`{"v":1,"hosts":{"a":[1,0,0,0,0,7]}}`, "message of host a in the recap is not valid"},
		"steps that are text":        {`{"v":1,"steps":1,"hosts":{"a":[1,0,0,0,0,"","","x"]}}`, "number of steps done of host a"},
		"what is not base64":         {`{"v":1,"z":"!"}`, "not base64"},
		"what is not zlib":           {`{"v":1,"z":"aGVsbG8="}`, "not zlib"},
		"zlib that was cut": {
			fmt.Sprintf(`{"v":1,"z":%q}`, base64.StdEncoding.EncodeToString([]byte{0x78, 0x9c, 0xab, 0x56})), "inflating",
		},
		"zlib of no JSON": {fmt.Sprintf(`{"v":1,"z":%q}`, zipped("hello")), "not JSON"},
		"zlib that becomes huge": {
			fmt.Sprintf(`{"v":1,"z":%q}`, zipped(`{"a":[1,0,0,0,0,"`+strings.Repeat("x", 2<<20)+`"]}`)), "not JSON",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(c.message)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v; want one with %q", err, c.want)
			}
			if len(got.Hosts) > 0 {
				t.Errorf("hosts are returned with the error: %+v", got.Hosts)
			}
		})
	}
	if _, err := Parse(""); !errors.Is(err, ErrNone) {
		t.Errorf("the error of no message is %v; want ErrNone", err)
	}
}

var seeds = []string{
	`{"v":1,"hosts":{"b":[1,2,3,4,5],"a":[0,0,0,1,0,"no route"]}}`, fmt.Sprintf(`{"v":1,"z":%q}`, zipped(`{"a":[7,0,0,0,1]}`)),
	`{"v":1,"steps":1,"hosts":{"a":[0,0,0,1,0,"x","",0,0]}}`, `{"v":1,"hosts":{},"error":"x"}`, `{"v":1,"hosts":{"a":[1,0,0,0,0,null]}}`, "null", "[]", "1", "",
}

// sound holds what Parse returns to its promises.
func sound(t *testing.T, message string) {
	t.Helper()
	got, err := Parse(message)
	if err != nil {
		if len(got.Hosts) > 0 || got.Error != "" {
			t.Errorf("Parse(%q) returns %+v with the error %v", message, got, err)
		}
		return
	}
	if !slices.IsSortedFunc(got.Hosts, func(a, b ansibleeev1.HostStatus) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("Parse(%q) returns hosts out of order: %+v", message, got.Hosts)
	}
	again, err := Parse(message)
	if diff := cmp.Diff(got, again); err != nil || diff != "" {
		t.Errorf("Parse(%q) returns something else the second time: %v\n%s", message, err, diff)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(sound)
}

func TestParseOfGarbledMessages(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	alphabet := `{}[]",:0123456789-.eavhostsz` + "\x00\n\\"
	for range 30000 {
		text := []byte(seeds[rng.IntN(len(seeds))])
		for range 1 + rng.IntN(4) {
			i := rng.IntN(len(text) + 1)
			switch rng.IntN(3) {
			case 0:
				text = slices.Insert(text, i, alphabet[rng.IntN(len(alphabet))])
			case 1:
				text = text[:i]
			default:
				if i < len(text) {
					text[i] = alphabet[rng.IntN(len(alphabet))]
				}
			}
		}
		sound(t, string(text))
	}
}
