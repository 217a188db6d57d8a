package nova

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/oslo"
)

// QuorumQueuesKey of the Secret of a message bus says whether its users use quorum
// queues. The infra operator writes it.
const QuorumQueuesKey = "quorumqueues"

// UsedQueues returns how a cell has used its message bus so far, nil for a new one. An
// earlier version, which did not note it, gave every cell classic queues, whatever the
// Secret said: requested.
func UsedQueues(cell *novav1.NovaCell, transportURL string, requested *bool) *novav1.MessageBusStatus {
	status := cell.Status
	if status.MessageBus == nil && (status.ComputeConfigSecretName != "" || status.Conductor != nil || len(status.Jobs) > 0) {
		return busStatus(transportURL, false, requested)
	}
	return status.MessageBus
}

// IsChosen reports whether what a cell has noted is of the virtual host of a transport_url: until
// then it has not decided which queues it uses there. A host in common is enough, whatever its
// port: the hosts of a URL are one cluster of RabbitMQ.
func IsChosen(bus *novav1.MessageBusStatus, transportURL string) bool {
	switch {
	case bus == nil:
		return false
	case len(bus.HostHashes) == 0: // of an earlier version
		return bus.VirtualHostHash == virtualHostHash(transportURL)
	}
	return slices.ContainsFunc(hostHashes(transportURL), func(hash string) bool { return slices.Contains(bus.HostHashes, hash) })
}

func busStatus(transportURL string, quorum bool, requested *bool) *novav1.MessageBusStatus {
	return &novav1.MessageBusStatus{
		VirtualHostHash: virtualHostHash(transportURL), HostHashes: hostHashes(transportURL), QuorumQueues: quorum, Requested: requested,
	}
}

// GeneratedQueues returns how the configuration that was generated for a cell uses its
// message bus: what is left of a status that a backup did not have. It returns nil for a
// text that is no such configuration.
func GeneratedQueues(config string, requested *bool) *novav1.MessageBusStatus {
	parsed, err := oslo.ParseSecret(config)
	if err != nil {
		return nil
	}
	transportURL := generatedURL(parsed)
	if transportURL == "" {
		return nil
	}
	quorum := slices.Equal(parsed.Get("oslo_messaging_rabbit", "rabbit_quorum_queue"), []string{"true"})
	return busStatus(transportURL, quorum, requested)
}

// GeneratedTransportURL returns the message bus that a generated configuration has, empty for
// a text that is no such configuration.
func GeneratedTransportURL(config string) string {
	parsed, err := oslo.ParseSecret(config)
	if err != nil {
		return ""
	}
	return generatedURL(parsed)
}

func generatedURL(config *oslo.Config) string {
	values := config.Get("DEFAULT", "transport_url")
	if len(values) == 0 {
		return ""
	}
	return strings.ReplaceAll(values[0], "$$", "$")
}

// Queues returns how a cell uses its message bus. used is how it has used it so far: nil
// for a new cell, which has quorum queues unless the Secret says otherwise. requested is
// what the Secret says, nil where it says nothing: then nothing changes.
//
// RabbitMQ rejects a queue or an exchange that exists with other arguments
// (https://www.rabbitmq.com/docs/queues#property-equivalence): the error says what to do
// about a change in a virtual host that is in use.
func Queues(used *novav1.MessageBusStatus, transportURL string, requested *bool) (*novav1.MessageBusStatus, error) {
	bus := busStatus(transportURL, used == nil || used.QuorumQueues, requested)
	switch {
	case requested == nil, *requested == bus.QuorumQueues && used != nil:
		return bus, nil
	case !IsChosen(used, transportURL):
		bus.QuorumQueues = *requested
		return bus, nil
	case used.Requested != nil && *used.Requested == *requested:
		return bus, nil
	}
	return nil, fmt.Errorf("%s is %t, but the virtual host of transport_url is in use with %s queues, and RabbitMQ does not change queues "+
		"that exist: set transport_url to another virtual host, or %s to %t",
		QuorumQueuesKey, *requested, queueType(used.QuorumQueues), QuorumQueuesKey, used.QuorumQueues)
}

// WithQueues returns a transport_url that has the type of its queues, for processes whose own
// configuration may have another one: oslo.messaging takes options of [oslo_messaging_rabbit]
// from the query, for connections to that message bus alone (ConfigOptsProxy). Options that it
// has already stay.
func WithQueues(transportURL string, quorum bool) string {
	if !isRabbit(transportURL) {
		return transportURL
	}
	address, query, _ := strings.Cut(transportURL, "?")
	var options []string
	if query != "" {
		options = strings.Split(query, "&")
	}
	for _, option := range []string{"amqp_durable_queues", "rabbit_quorum_queue", "rabbit_transient_quorum_queue"} {
		if !slices.ContainsFunc(options, func(o string) bool { return strings.HasPrefix(o, option+"=") }) {
			options = append(options, option+"="+strconv.FormatBool(quorum))
		}
	}
	return address + "?" + strings.Join(options, "&")
}

// ParseQueues returns what the value of QuorumQueuesKey says, nil if it is empty. The error
// does not have the value, which is from a Secret.
func ParseQueues(value string) (*bool, error) {
	value = strings.TrimSpace(value)
	if value == "" {
		return nil, nil
	}
	quorum, err := strconv.ParseBool(strings.ToLower(value))
	if err != nil {
		return nil, fmt.Errorf("%s is neither true nor false: correct or remove it", QuorumQueuesKey)
	}
	return &quorum, nil
}

func queueType(quorum bool) string {
	if quorum {
		return "quorum"
	}
	return "classic"
}

// virtualHostHash is equal for equal hosts, in whatever order, and paths of a transport_url:
// users and passwords are no part of it.
func virtualHostHash(transportURL string) string {
	hosts, path := hostsOf(transportURL)
	slices.Sort(hosts)
	return hashOf(strings.Join(hosts, ",") + "/" + path)
}

// hostHashes are those of each host with the virtual host, sorted. RabbitMQ calls the one that
// oslo.messaging uses without a path "/".
func hostHashes(transportURL string) []string {
	hosts, path := hostsOf(transportURL)
	if unescaped, err := url.PathUnescape(path); err == nil {
		path = unescaped
	}
	path = cmp.Or(path, "/")
	for i, host := range hosts {
		name, _ := splitPort(host)
		hosts[i] = hashOf(strings.ToLower(name) + "/" + path)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}
