package nova

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

func TestQueues(t *testing.T) {
	const url = "rabbit://u:p@b:5671,u:p@a:5671/cell1?ssl=1"
	bus := func(path string, quorum bool) *novav1.MessageBusStatus {
		return &novav1.MessageBusStatus{VirtualHostHash: virtualHostHash("rabbit://x:y@a:5671,z@b:5671/" + path), QuorumQueues: quorum}
	}
	const here, old = "cell1", "old"
	for name, c := range map[string]struct {
		used   *novav1.MessageBusStatus
		wanted string
		want   *novav1.MessageBusStatus
		err    string
	}{
		"a new cell has quorum queues":                      {nil, "", bus(here, true), ""},
		"a new cell has what the Secret says":               {nil, "false\n", bus(here, false), ""},
		"a cell keeps what it has":                          {bus(here, false), "", bus(here, false), ""},
		"a cell that has what the Secret says":              {bus(here, true), "True", bus(here, true), ""},
		"another virtual host has what the Secret says":     {bus(old, false), "true", bus(here, true), ""},
		"another virtual host without a word is as the old": {bus(old, false), "", bus(here, false), ""},
		"no change in a virtual host that is in use": {bus(here, false), "true", nil,
			"quorumqueues is true, but the virtual host of transport_url is in use with classic queues"},
		"nor back":                  {bus(here, true), "false", nil, "set transport_url to another virtual host, or quorumqueues to true"},
		"a value that says nothing": {nil, "maybe", nil, `quorumqueues is "maybe": set it to true or false`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Queues(c.used, url, c.wanted)
			if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("the error is %v; want %q", err, c.err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the queues (-want +got):\n%s", diff)
			}
			if err != nil && strings.Contains(err.Error(), "5671") {
				t.Errorf("the error has a part of the URL: %v", err)
			}
		})
	}
}
