package nova

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	podifiedv1 "github.com/edpm-operators/edpm-operators/apis/common/podified"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

func TestQueues(t *testing.T) {
	const url = "rabbit://u:p@b:5671,u:p@a:5671/cell1?ssl=1"
	yes, no := ptr.To(true), ptr.To(false)
	bus := func(path string, quorum bool, requested *bool) *novav1.MessageBusStatus {
		return busStatus("rabbit://x:y@a:5671,z@b:5671/"+path, quorum, requested)
	}
	const here, old = "cell1", "old"
	for name, c := range map[string]struct {
		used   *novav1.MessageBusStatus
		wanted string
		want   *novav1.MessageBusStatus
		err    string
	}{
		"a new cell has quorum queues":                      {nil, "", bus(here, true, nil), ""},
		"a new cell has what the Secret says":               {nil, "false\n", bus(here, false, no), ""},
		"a cell keeps what it has":                          {bus(here, false, nil), "", bus(here, false, nil), ""},
		"a cell that has what the Secret says":              {bus(here, true, nil), "True", bus(here, true, yes), ""},
		"another virtual host has what the Secret says":     {bus(old, false, nil), "true", bus(here, true, yes), ""},
		"another virtual host without a word is as the old": {bus(old, false, nil), "", bus(here, false, nil), ""},
		"what an earlier version did not read is no change": {bus(here, false, yes), "true", bus(here, false, yes), ""},
		"no change in a virtual host that is in use": {bus(here, false, no), "true", nil,
			"quorumqueues is true, but the virtual host of transport_url is in use with classic queues"},
		"none from no word":         {bus(here, false, nil), "true", nil, "set transport_url to another virtual host, or quorumqueues to false"},
		"nor back":                  {bus(here, true, yes), "false", nil, "set transport_url to another virtual host, or quorumqueues to true"},
		"a value that says nothing": {nil, "maybe", nil, "quorumqueues is neither true nor false"},
	} {
		t.Run(name, func(t *testing.T) {
			requested, err := ParseQueues(c.wanted)
			var got *novav1.MessageBusStatus
			if err == nil {
				got, err = Queues(c.used, url, requested)
			}
			if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("the error is %v; want %q", err, c.err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the queues (-want +got):\n%s", diff)
			}
			if err != nil && (strings.Contains(err.Error(), "5671") || strings.Contains(err.Error(), "maybe")) {
				t.Errorf("the error has a part of the Secret: %v", err)
			}
		})
	}
}

func TestAVirtualHostIsRecognized(t *testing.T) {
	for name, c := range map[string]struct {
		before, now string
		want        bool
	}{
		"with another port, and TLS":    {"rabbit://u:p@a:5672/cell1", "rabbit://u:p@a:5671/cell1?ssl=1", true},
		"with one host more":            {"rabbit://u:p@a:5672/cell1", "rabbit://u:p@a:5672,u:p@b:5672/cell1", true},
		"with one host less":            {"rabbit://u:p@a,u:p@b/cell1", "rabbit://u:p@b/cell1", true},
		"without a port":                {"rabbit://u:p@a:5672/cell1", "rabbit://u:p@a/cell1", true},
		"in other letters":              {"rabbit://u:p@Bus.example.org/cell1", "rabbit://u:p@bus.example.org/cell1", true},
		"by its address":                {"rabbit://u:p@[fd00::1]/cell1", "rabbit://u:p@[fd00::1]:5671/cell1", true},
		"without a path":                {"rabbit://u:p@a", "rabbit://u:p@a/%2F", true},
		"unless the path is another":    {"rabbit://u:p@a/cell1", "rabbit://u:p@a/cell2", false},
		"unless its letters are others": {"rabbit://u:p@a/cell1", "rabbit://u:p@a/Cell1", false},
		"unless no host is in common":   {"rabbit://u:p@a,u:p@b/cell1", "rabbit://u:p@c/cell1", false},
		"unless a user is all there is": {"rabbit://a:p@b/cell1", "rabbit://a:p@c/cell1", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsChosen(busStatus(c.before, false, nil), c.now); got != c.want {
				t.Errorf("it is: %t", got)
			}
		})
	}
}

func TestAVirtualHostOfAnEarlierVersionIsRecognized(t *testing.T) {
	// The hash is that of "a:5671,b:5671/cell1", as versions without HostHashes noted it.
	used := &novav1.MessageBusStatus{VirtualHostHash: "1ebb6dd8bf4803c5a993be00b1024602"}
	if !IsChosen(used, "rabbit://u:p@b:5671,u:q@a:5671/cell1?ssl=1") {
		t.Error("the same hosts and path are taken for another virtual host")
	}
	if IsChosen(used, "rabbit://u:p@b:5671,u:q@a:5671/cell2") {
		t.Error("another path is taken for the virtual host")
	}
}

func TestATransportURLWithItsQueues(t *testing.T) {
	const quorum = "amqp_durable_queues=true&rabbit_quorum_queue=true&rabbit_transient_quorum_queue=true"
	classic := strings.ReplaceAll(quorum, "true", "false")
	for name, c := range map[string]struct {
		url    string
		quorum bool
		want   string
	}{
		"quorum":                     {"rabbit://u:p@b/cell1", true, "rabbit://u:p@b/cell1?" + quorum},
		"classic, which is said too": {"rabbit://u:p@b:5671,u:p@a:5671/", false, "rabbit://u:p@b:5671,u:p@a:5671/?" + classic},
		"next to other options":      {"rabbit://u:p@b/cell1?ssl=1", true, "rabbit://u:p@b/cell1?ssl=1&" + quorum},
		"without a virtual host":     {"kombu://u:p@b", true, "kombu://u:p@b?" + quorum},
		"with an empty query":        {"rabbit://u:p@b/?", true, "rabbit://u:p@b/?" + quorum},
		"one that has them":          {"rabbit://u:p@b/?" + quorum, false, "rabbit://u:p@b/?" + quorum},
		"another message bus":        {"fake://", true, "fake://"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := WithQueues(c.url, c.quorum); got != c.want {
				t.Errorf("it is %s; want %s", got, c.want)
			}
		})
	}
}

func TestACellOfAnEarlierVersionKeepsItsQueues(t *testing.T) {
	const url = "rabbit://u:p@h/cell1"
	yes := ptr.To(true)
	for name, status := range map[string]novav1.NovaCellStatus{
		"with computes":    {ComputeConfigSecretName: "c"},
		"with a conductor": {Conductor: &podifiedv1.Status{}},
		"with a database":  {Jobs: map[string]string{"j": "h"}},
	} {
		used := UsedQueues(&novav1.NovaCell{Status: status}, url, yes)
		if got, err := Queues(used, url, yes); err != nil || got.QuorumQueues {
			t.Errorf("%s it gets %+v (%v); want classic queues", name, got, err)
		}
	}
	if used := UsedQueues(&novav1.NovaCell{}, url, yes); used != nil {
		t.Errorf("a new cell has used %+v", used)
	}
}

func TestQueuesOfAGeneratedConfiguration(t *testing.T) {
	const url = `rabbit://u:p$1@h/"cell1" `
	for _, quorum := range []bool{true, false} {
		config := Config{TransportURL: url, QuorumQueues: quorum}
		for name, render := range map[string]func() (string, error){"computes": config.Compute, "services": config.Service} {
			text, err := render()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(busStatus(url, quorum, nil), GeneratedQueues(text, nil)); diff != "" {
				t.Errorf("the queues of the configuration of %s (-want +got):\n%s", name, diff)
			}
		}
	}
	for _, text := range []string{"", "no configuration", "[DEFAULT]\n"} {
		if used := GeneratedQueues(text, nil); used != nil {
			t.Errorf("%q has used %+v", text, used)
		}
	}
}
