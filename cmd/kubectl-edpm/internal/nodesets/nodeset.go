package nodesets

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

// setPlan is what is known of a NodeSet while it is planned.
type setPlan struct {
	*planner
	reporter
	set    *nodeSet
	status nodeSetStatus
	role   *dataplanev1.OpenStackDataPlaneRole
	// compute is the configuration of its computes.
	compute computeConfig
	// ceph are the Secrets that are mounted for Ceph.
	ceph []string
	// steps are those that variables need.
	steps map[string]bool
	// defined are the variables of the role and of its nodes.
	defined map[string]bool
}

// managementNetwork is the network by which openstack-operator reaches hosts.
const managementNetwork = "ctlplane"

var spec = field.NewPath("spec")

// planNodeSet makes a role of a NodeSet, and nodes of its nodes.
func (p *planner) planNodeSet(in *input[nodeSet]) error {
	set := &in.object
	s := &setPlan{planner: p, reporter: p.reporter(in.source, NodeSetKind, set.Metadata.Name), set: set, steps: map[string]bool{}, defined: map[string]bool{}}
	// A status that cannot be read only makes addresses unknown.
	_ = json.Unmarshal(set.Status, &s.status)
	if !s.admits(field.NewPath("metadata", "name"), validate.RequiredName(nil, set.Metadata.Name)) {
		return nil
	}
	s.role = &dataplanev1.OpenStackDataPlaneRole{ObjectMeta: metav1.ObjectMeta{Namespace: set.Metadata.Namespace, Name: set.Metadata.Name}}
	s.add(field.NewPath("metadata", "name"), Renamed, "OpenStackDataPlaneRole %s, with deployStrategy.deploy: false: nothing is run before you remove that", set.Metadata.Name)
	s.metadata()
	s.template()
	s.fields()
	nodes := s.nodes()
	if err := s.services(); err != nil {
		return err
	}
	s.needsOfTemplate()
	return s.write(nodes)
}

// metadata reports labels and annotations, which are for other programs.
func (s *setPlan) metadata() {
	if len(s.set.Metadata.Labels) > 0 {
		s.add(field.NewPath("metadata", "labels"), NotNeeded, "set those that you need yourself")
	}
	if len(s.set.Metadata.Annotations) > 0 {
		s.add(field.NewPath("metadata", "annotations"), NotNeeded, "set those that you need yourself")
	}
}

// fields are those of the spec that are not about nodes, services or bare metal.
func (s *setPlan) fields() {
	in, out := &s.set.Spec, &s.role.Spec
	out.DeployStrategy.Deploy = ptr.To(false)
	for i, v := range in.Env {
		at := spec.Child("env").Index(i)
		if slices.ContainsFunc(out.Env, func(other corev1.EnvVar) bool { return other.Name == v.Name }) {
			s.add(at, NoCounterpart, "%s is given twice: write it once", v.Name)
		} else if s.admits(at, validate.Env(spec.Child("env"), []corev1.EnvVar{v})) {
			out.Env = append(out.Env, v)
			s.add(at, TakenOver, "")
		}
	}
	for i, name := range in.NetworkAttachments {
		if at := spec.Child("networkAttachments").Index(i); s.admits(at, validate.ObjectName(at, name)) {
			out.NetworkAttachments = append(out.NetworkAttachments, name)
			s.add(at, TakenOver, "")
		}
	}
	if len(in.Tags) > 0 {
		s.add(spec.Child("tags"), NoCounterpart, "set ansibleTags of deployStrategy to limit runs; variable nodeset_tags does not exist")
	}
	if in.SecretMaxSize != nil {
		s.add(spec.Child("secretMaxSize"), NotNeeded, "certificates of hosts are not in Secrets")
	}
	if in.TLSEnabled != nil {
		s.add(spec.Child("tlsEnabled"), NotNeeded, "live migration is always over TLS; for the certificates of other services see the services")
	}
	s.bareMetal()
}

// template are the defaults of the nodes.
func (s *setPlan) template() {
	in, out, at := &s.set.Spec.NodeTemplate, &s.role.Spec.NodeTemplate, spec.Child("nodeTemplate")
	if in.AnsibleSSHPrivateKeySecret != "" && s.admits(at.Child("ansibleSSHPrivateKeySecret"), validate.ObjectName(nil, in.AnsibleSSHPrivateKeySecret)) {
		out.AnsibleSSHPrivateKeySecret = in.AnsibleSSHPrivateKeySecret
		s.add(at.Child("ansibleSSHPrivateKeySecret"), TakenOver, "")
	}
	s.extraMounts(at.Child("extraMounts"), in.ExtraMounts, out)
	if in.Ansible.AnsibleHost != "" {
		s.add(at.Child("ansible", "ansibleHost"), NoCounterpart, "a role has no host: set ansibleHost of each node")
	}
	s.section(at, &in.section, out)
}

// section is what templates and nodes have in common.
func (s *setPlan) section(at *field.Path, in *section, out *dataplanev1.NodeSection) {
	out.Networks = s.networks(at.Child("networks"), in.Networks)
	out.UserData = s.secretReference(at.Child("userData"), in.UserData)
	out.NetworkData = s.secretReference(at.Child("networkData"), in.NetworkData)
	if in.ManagementNetwork != "" {
		out.ManagementNetwork = in.ManagementNetwork
		s.add(at.Child("managementNetwork"), TakenOver, "")
	}
	at = at.Child("ansible")
	if in.Ansible.AnsibleUser != "" && s.admits(at.Child("ansibleUser"), validate.User(nil, in.Ansible.AnsibleUser)) {
		out.AnsibleUser = in.Ansible.AnsibleUser
		s.add(at.Child("ansibleUser"), TakenOver, "")
	}
	if port := in.Ansible.AnsiblePort; port < 0 || port > 65535 {
		s.add(at.Child("ansiblePort"), NoCounterpart, "%d is not a port: write 1 to 65535", port)
	} else if port != 0 {
		out.AnsiblePort = int32(port)
		s.add(at.Child("ansiblePort"), TakenOver, "")
	}
	s.variables(at, &in.Ansible, out)
}

func (s *setPlan) networks(at *field.Path, networks []network) []dataplanev1.NetworkSection {
	var out []dataplanev1.NetworkSection
	for i, n := range networks {
		same := func(other dataplanev1.NetworkSection) bool { return other.Network == n.Name }
		switch {
		case n.Name == "":
			s.add(at.Index(i).Child("name"), NoCounterpart, "is empty: name the network")
		case slices.ContainsFunc(out, same):
			s.add(at.Index(i), NoCounterpart, "network %s is given twice: write it once", n.Name)
		default:
			s.add(at.Index(i), Renamed, "networks[].network has the name")
			if !s.admits(at.Index(i).Child("fixedIP"), validate.IP(nil, n.FixedIP)) {
				n.FixedIP = ""
			}
			out = append(out, dataplanev1.NetworkSection{Network: n.Name, SubnetName: n.SubnetName, FixedIP: n.FixedIP, DefaultRoute: n.DefaultRoute})
		}
	}
	return out
}

func (s *setPlan) secretReference(at *field.Path, ref *corev1.SecretReference) *corev1.SecretReference {
	if ref == nil || !s.admits(at.Child("name"), validate.RequiredName(nil, ref.Name)) {
		return nil
	}
	if ns := s.set.Metadata.Namespace; ref.Namespace != "" && ref.Namespace != ns {
		s.add(at.Child("namespace"), NoCounterpart, "Secrets are read in the namespace of the role only: copy the Secret, and remove this")
		return nil
	}
	s.add(at, TakenOver, "")
	return &corev1.SecretReference{Name: ref.Name}
}

// plannedNode is a node, and where it comes from.
type plannedNode struct {
	at   *field.Path
	node *dataplanev1.OpenStackDataPlaneNode
}

// nodes makes the nodes, by their names.
func (s *setPlan) nodes() []plannedNode {
	var all []plannedNode
	for _, name := range slices.Sorted(maps.Keys(s.set.Spec.Nodes)) {
		if n := s.node(name, s.set.Spec.Nodes[name]); n != nil {
			all = append(all, plannedNode{spec.Child("nodes").Key(name), n})
		}
	}
	return all
}

// node makes a node; nil if it cannot be one here.
func (s *setPlan) node(name string, in node) *dataplanev1.OpenStackDataPlaneNode {
	at, before := spec.Child("nodes").Key(name), len(*s.findings)
	if !s.admits(at, validate.RequiredName(nil, name)) {
		return nil
	}
	out := &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: metav1.ObjectMeta{Namespace: s.set.Metadata.Namespace, Name: name}}
	out.Spec.Role = s.set.Metadata.Name
	s.add(at, Renamed, "OpenStackDataPlaneNode %s", name)
	if in.HostName != "" && s.admits(at.Child("hostName"), validate.Hostname(nil, in.HostName)) {
		out.Spec.HostName = in.HostName
		s.add(at.Child("hostName"), TakenOver, "")
	}
	s.section(at, &in.section, &out.Spec.Node)
	s.addresses(at, name, &in, out)
	s.novaHost(at, cmp.Or(in.HostName, name), out)
	if len(in.BmhLabelSelector) > 0 {
		s.add(at.Child("bmhLabelSelector"), NoCounterpart, "name the machine in bareMetalHost of the node")
	}
	if in.CtlplaneInterface != "" {
		s.add(at.Child("ctlplaneInterface"), NoCounterpart, "set ctlplaneInterface in baremetalSetTemplate of the role; nodes with another NIC need a role of their own, or networkData")
	}
	if other := s.conflict(out); other != "" {
		*s.findings = (*s.findings)[:before]
		s.add(at, NoCounterpart, "%s: two nodes must not configure one host; correct or remove one of them", other)
		return nil
	}
	return out
}

// addresses are that by which Ansible reaches the host, and those of its networks, which IPAM
// may have given to it.
func (s *setPlan) addresses(at *field.Path, name string, in *node, out *dataplanev1.OpenStackDataPlaneNode) {
	given := s.status.AllIPs[cmp.Or(in.HostName, name)]
	networks := out.Spec.Node.Networks
	if len(networks) == 0 && len(given) > 0 {
		networks = slices.Clone(s.role.Spec.NodeTemplate.Networks)
	}
	management := cmp.Or(in.ManagementNetwork, s.set.Spec.NodeTemplate.ManagementNetwork, managementNetwork)
	reached := ""
	for i := range networks {
		n := &networks[i]
		place := at.Child("networks").Index(i).Child("fixedIP")
		switch ip := given[n.Network]; {
		case n.FixedIP != "":
		case ip != "" && len(validate.IP(nil, ip)) == 0:
			n.FixedIP = ip
			s.add(place, TakenOver, "from status.allIPs")
		default:
			s.add(place, NoCounterpart, "nothing gives out addresses here: write the one that the host has in network %s", n.Network)
		}
		if n.Network == management {
			reached = n.FixedIP
		}
	}
	out.Spec.Node.Networks = networks
	s.ansibleHost(at.Child("ansible", "ansibleHost"), in, reached, out)
}

func (s *setPlan) ansibleHost(at *field.Path, in *node, reached string, out *dataplanev1.OpenStackDataPlaneNode) {
	switch host := in.Ansible.AnsibleHost; {
	case host != "":
		if s.admits(at, validate.Address(nil, host)) {
			out.Spec.AnsibleHost = host
			s.add(at, TakenOver, "")
		}
	case reached != "":
		out.Spec.AnsibleHost = reached
		s.add(at, Renamed, "the address of the host in the management network")
	default:
		s.add(at, NoCounterpart, "the address is not known: set ansibleHost of the node, or its host name has to resolve")
	}
}

// conflict says which other node has the same name or host; empty if none has.
func (s *setPlan) conflict(out *dataplanev1.OpenStackDataPlaneNode) string {
	for _, place := range []key{{"name", out.Namespace, out.Name}, {"host", out.Namespace, out.Spec.AnsibleHost}} {
		if other := s.hosts[place]; place.name != "" && other != "" {
			return "it has the " + place.kind + " of node " + other
		}
	}
	me := out.Name + " of " + s.object
	s.hosts[key{"name", out.Namespace, out.Name}], s.hosts[key{"host", out.Namespace, out.Spec.AnsibleHost}] = me, me
	return ""
}

// write adds the role, its nodes and their computes.
func (s *setPlan) write(nodes []plannedNode) error {
	kind := dataplanev1.GroupVersion.WithKind
	if err := s.put(s.reporter, field.NewPath("metadata", "name"), kind("OpenStackDataPlaneRole"), s.role); err != nil {
		return err
	}
	for _, n := range nodes {
		if err := s.put(s.reporter, n.at, kind("OpenStackDataPlaneNode"), n.node); err != nil {
			return err
		}
		if err := s.writeCompute(n); err != nil {
			return err
		}
	}
	return nil
}
