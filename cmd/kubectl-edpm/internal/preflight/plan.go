// Package preflight plans runs that look at hosts before something is deployed on them, and
// reads their results.
package preflight

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/dataplane"
	"github.com/edpm-operators/edpm-operators/internal/dataplane/inherit"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
)

// Playbook looks at hosts in check mode, and prints a result for each of them.
type Playbook struct {
	// name of the playbook in the collection, and of its runs.
	name, prefix string
	// token is the variable with the word by which results are known.
	token string
}

var (
	// Preflight checks what hosts need.
	Preflight = Playbook{name: "edpm.operators.preflight", prefix: "preflight-", token: "edpm_preflight_token"}
	// TakeOver does what the take-over of hosts begins with.
	TakeOver = Playbook{name: "edpm.operators.take_over", prefix: "take-over-", token: "edpm_other_tools_token"}
)

const (
	// directory is where the playbook finds what hosts have to reach.
	directory = "/runner/preflight"
	// authorities are the certificates that are trusted, in a Secret and in the directory.
	authorities = "tls-ca-bundle.pem"
)

// Host is a node with what decides how it is checked.
type Host struct {
	Node *dataplanev1.OpenStackDataPlaneNode
	// Role of the node; nil without one.
	Role *dataplanev1.OpenStackDataPlaneRole
	// Cell whose services the host has to reach; nil without one.
	Cell *novav1.NovaCell
	// Vars of the playbook for the host.
	Vars map[string]any
	eff  inherit.Effective
}

// Run is a run that checks hosts, with its inputs, and the token by which its results are known.
type Run struct {
	Object *ansibleeev1.OpenStackAnsibleEE
	Inputs *corev1.Secret
	Hosts  []string
	Token  string
}

// Plan returns the runs of the playbook on the hosts: one for those that share a Pod, as
// their deployment would. The error says which host cannot be logged in to, and what to set.
func (p Playbook) Plan(hosts []Host) ([]Run, error) {
	groups, order := map[string][]Host{}, []string{}
	for _, h := range hosts {
		var err error
		if h.eff, err = inherit.EffectiveOf(h.Node, h.Role); err != nil {
			return nil, fmt.Errorf("node %s: %w", h.Node.Name, err)
		}
		if h.eff.SSHKeySecret == "" {
			return nil, fmt.Errorf("node %s has no SSH key: set ansibleSSHPrivateKeySecret in spec.node, or in spec.nodeTemplate of its role", h.Node.Name)
		}
		key := h.podKey()
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], h)
	}
	var runs []Run
	for _, key := range order {
		for batch := range slices.Chunk(groups[key], ansibleeev1.MaxTargets) {
			run, err := p.newRun(batch)
			if err != nil {
				return nil, err
			}
			runs = append(runs, run)
		}
	}
	return runs, nil
}

// podKey is equal for hosts that can share a Pod.
func (h Host) podKey() string {
	text, _ := json.Marshal(h.spec()) // it comes from JSON
	return string(text)
}

// spec of the run that checks the host, without what belongs to the hosts.
func (h Host) spec() ansibleeev1.OpenStackAnsibleEESpec {
	return ansibleeev1.OpenStackAnsibleEESpec{
		Check: true, BackoffLimit: ptr.To[int32](0), PreserveJobs: ptr.To(false),
		SSHKeySecretName: h.eff.SSHKeySecret, JumpHost: h.eff.JumpHost, Env: h.eff.Env, NetworkAttachments: h.eff.NetworkAttachments,
		TopologyRef: h.eff.TopologyRef, ExtraMounts: slices.Concat(h.eff.ExtraMounts, h.mounts()),
	}
}

// mounts are the configuration of the computes of the cell, as soon as there is one, and the
// certificates that they trust.
func (h Host) mounts() []ansibleeev1.ExtraMount {
	if h.Cell == nil {
		return nil
	}
	sources := []ansibleeev1.ExtraProjectionSource{projected(novav1.ComputeConfigSecretName(h.Cell.Name), novav1.GeneratedConfigKey)}
	if name := h.Cell.Spec.CABundleSecretName; name != "" {
		sources = append(sources, projected(name, authorities))
	}
	return []ansibleeev1.ExtraMount{{
		Volumes: []ansibleeev1.ExtraVolume{{Name: "preflight", Projected: &ansibleeev1.ExtraProjection{Sources: sources}}},
		Mounts:  []corev1.VolumeMount{{Name: "preflight", MountPath: directory, ReadOnly: true}},
	}}
}

// projected is a key of a Secret that need not exist.
func projected(secret, key string) ansibleeev1.ExtraProjectionSource {
	return ansibleeev1.ExtraProjectionSource{Secret: &corev1.SecretProjection{
		LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Items: []corev1.KeyToPath{{Key: key, Path: key}}, Optional: ptr.To(true),
	}}
}

// newRun returns the run for hosts that share a Pod.
func (p Playbook) newRun(batch []Host) (Run, error) {
	run := Run{Token: strings.ToLower(rand.Text())}
	name, namespace := p.prefix+run.Token[:10], batch[0].Node.Namespace
	vars, known := map[string]map[string]any{}, ""
	for _, h := range batch {
		own := dataplane.HostVars(h.eff)
		maps.Copy(own, h.Vars)
		vars[h.Node.Name] = own
		known += edpm.KnownHost(own, h.Node.Name, dataplane.HostKey(h.Node))
		run.Hosts = append(run.Hosts, h.Node.Name)
	}
	inventory, err := edpm.Inventory{All: edpm.InventoryGroup{Hosts: vars}}.Render()
	if err != nil {
		return run, err
	}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	run.Inputs = &corev1.Secret{ObjectMeta: meta, StringData: map[string]string{edpm.InventoryKey: inventory, edpm.KnownHostsKey: known}}
	run.Object = &ansibleeev1.OpenStackAnsibleEE{ObjectMeta: meta, Spec: batch[0].spec()}
	run.Object.Spec.Playbook, run.Object.Spec.InputsSecretName = p.name, name
	token, _ := json.Marshal(run.Token) // text
	run.Object.Spec.ExtraVars = map[string]apiextensionsv1.JSON{p.token: {Raw: token}}
	return run, nil
}
