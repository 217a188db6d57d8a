// Package identity knows the options of a service that are no configuration of it:
// with another value it is another service, and what belongs to the one that it was
// is left without it. A compute with another name or another message bus leaves its
// guests with a compute that no longer reports, and nova cannot move a compute
// between cells (seeds/004).
//
// The table is what admission, the controllers and the documentation go by.
package identity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/edpm-operators/edpm-operators/internal/oslo"
)

// Service is what reads a text that people write.
type Service string

// Services with a text, as the documentation calls them.
const (
	// HostCompute is the nova-compute of a NovaExternalCompute.
	HostCompute Service = "NovaExternalCompute"
	// PodCompute is that of a NovaCompute.
	PodCompute Service = "NovaCompute"
	// PodNova is another service of nova in pods: of a Nova or of a NovaCell.
	PodNova Service = "Nova, NovaCell"
	// MetadataAgent is neutron's agent of an OVNMetadataAgent.
	MetadataAgent Service = "OVNMetadataAgent"
	// Partner is an EDPMService, which follows its class. The text of a class itself is free.
	Partner Service = "EDPMService"
	Class   Service = "EDPMServiceClass"
	// Image is a Glance or GlanceAPI. None of its options is in the table: it has no name
	// and no cell, and its database may be given in its text.
	Image Service = "GlanceAPI"
)

// name of an option.
type name struct{ section, key string }

// Option is an option that people cannot set for some services.
type Option struct {
	name
	// also are the names that releases of oslo.db before 2023.2 have for it.
	also     []name
	Services []Service
	// Effect of another value, and Remedy: where its value belongs.
	Effect, Remedy string
}

var (
	computes = []Service{HostCompute, PodCompute}
	nova     = []Service{HostCompute, PodCompute, PodNova}
)

// Options returns the table. Sources: nova/conf/netconf.py, nova/conf/database.py,
// nova/conf/compute.py, nova/conf/libvirt.py, oslo_messaging/transport.py,
// oslo_db/options.py, oslo_config/cfg.py, neutron/conf/agent/ovn/metadata/config.py,
// neutron/conf/plugins/ml2/drivers/ovn/ovn_conf.py.
func Options() []Option {
	return []Option{
		{name{"DEFAULT", "host"}, nil, []Service{HostCompute}, "registers the host as another compute, without its guests",
			"remove it; ansibleVars of the node can name a host with edpm_nova_host before its first run"},
		{name{"DEFAULT", "host"}, nil, []Service{PodCompute, PodNova}, "makes one service of all replicas", "remove it; each pod has its own name"},
		{name{"DEFAULT", "host"}, nil, []Service{Partner}, "makes another service of this one", "remove it; the playbook of the EDPMServiceClass names the service"},
		{name{"DEFAULT", "transport_url"}, nil, nova, "connects it to another message bus, that of another cell",
			"set it in the Secret of the message bus that the NovaCell or Nova names"},
		{name{"DEFAULT", "transport_url"}, nil, []Service{Partner}, "connects it to another message bus than its class", "set it in configFiles of the EDPMServiceClass"},
		{name{"DEFAULT", "control_exchange"}, nil, nova, "hides it from the other services of its message bus", "remove it"},
		{name{"database", "connection"}, connections, computes, "connects it to a database", "remove it; computes use that of their cell through the conductor"},
		{name{"database", "connection"}, connections, []Service{PodNova}, "connects it to the database of another cell", "set cellDatabaseInstance of the cell in the Nova, or cellDatabaseHostname of the NovaCell"},
		{name{"database", "connection"}, connections, []Service{Partner}, "connects it to another database than its class", "set it in configFiles of the EDPMServiceClass"},
		{name{"api_database", "connection"}, nil, computes, "connects it to a database", "remove it; computes use that of their cell through the conductor"},
		{name{"api_database", "connection"}, nil, []Service{PodNova}, "connects it to another API database", "set apiDatabaseInstance of the Nova, or apiDatabaseHostname of the NovaCell"},
		{name{"DEFAULT", "compute_driver"}, nil, []Service{HostCompute}, "makes it a compute that does not know the guests of libvirt",
			"remove it; computes with another driver are pods: create a NovaCompute"},
		{name{"DEFAULT", "compute_driver"}, nil, []Service{PodCompute}, "makes it a compute of another kind", "set spec.computeDriver"},
		{name{"libvirt", "connection_uri"}, nil, []Service{HostCompute}, "makes it the compute of another libvirt and its guests", "remove it; step libvirt runs libvirt on the host"},
		{name{"ovn", "ovn_sb_connection"}, nil, []Service{MetadataAgent}, "connects it to another OVN", "set it in the Secret that spec.ovnConfigSecretName names"},
		{name{"ovs", "ovsdb_connection"}, nil, []Service{MetadataAgent}, "makes it the agent of another chassis", "remove it; it is that of the Open vSwitch of the host"},
		{name{"DEFAULT", "state_path"}, nil, []Service{MetadataAgent}, "leaves the proxies that run without an agent", "remove it; the directory is that which the host keeps"},
		{name{"DEFAULT", "config_source"}, nil, append(slices.Clone(nova), MetadataAgent, Partner), "reads options from a place where they cannot be checked", "write these options themselves"},
	}
}

// connections are earlier names of [database] connection.
var connections = []name{{"DEFAULT", "sql_connection"}, {"database", "sql_connection"}, {"sql", "connection"}}

// Finding is an assignment that would make another service of a service. It has no
// value of the text.
type Finding struct {
	Line    int
	Message string
	// Value that is assigned, which may be a secret.
	Value string
}

// Find returns the assignments in the text of a service to options of the table, in the
// order of their lines. They are found as oslo.config finds options: the case of sections
// does not count, but for DEFAULT, that of keys does.
func Find(service Service, config *oslo.Config) []Finding {
	var found []Finding
	for _, option := range Options() {
		if !slices.Contains(option.Services, service) {
			continue
		}
		for _, n := range append([]name{option.name}, option.also...) {
			for _, v := range config.Values(n.section, n.key) {
				found = append(found, Finding{v.Line, fmt.Sprintf("line %d: [%s] %s %s: %s", v.Line, n.section, n.key, option.Effect, option.Remedy), v.Text})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b Finding) int { return cmp.Compare(a.Line, b.Line) })
	return found
}

// maxShown is how many findings an error spells out.
const maxShown = 10

// Error is what the text of a service would change of its identity.
type Error []Finding

// Error returns the first findings, one a line.
func (e Error) Error() string {
	var lines []string
	for _, f := range e[:min(len(e), maxShown)] {
		lines = append(lines, f.Message)
	}
	if more := len(e) - maxShown; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// Check returns an Error if the text of a service would make another one of it.
func Check(service Service, config *oslo.Config) error {
	if found := Find(service, config); len(found) > 0 {
		return Error(found)
	}
	return nil
}

// Markdown is the table as the documentation has it.
func Markdown() string {
	b := &strings.Builder{}
	b.WriteString("| option | of | another value | instead |\n|---|---|---|---|\n")
	for _, o := range Options() {
		services := make([]string, len(o.Services))
		for i, s := range o.Services {
			services[i] = string(s)
		}
		fmt.Fprintf(b, "| `[%s] %s` | %s | %s | %s |\n", o.section, o.key, strings.Join(services, ", "), o.Effect, o.Remedy)
	}
	return b.String()
}
