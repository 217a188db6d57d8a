// Package images knows the container images that are used when a spec names
// none. The defaulting webhooks and the controllers share it, so that an
// object that was admitted while the webhook was away gets the same images.
//
// The names of the variables and the fallbacks are those of the OpenStack
// operators (nova-operator api/v1beta1/common_types.go, and for OVN on hosts
// openstack-operator api/dataplane/v1beta1); OLM fills the
// variables and mirrors what they name. The execution environment has no
// fallback: theirs has neither the playbooks of edpm-operators nor its entry point,
// which keeps a hostile host from the key of the run.
package images

import (
	"fmt"
	"os"
	"sync"
)

// The variables with the execution environment.
const (
	ansibleEE     = "RELATED_IMAGE_ANSIBLEEE_IMAGE_URL_DEFAULT"
	novaAnsibleEE = "RELATED_IMAGE_NOVA_ANSIBLE_EE_IMAGE_URL_DEFAULT"
)

// MissingRunner returns what to say where no execution environment is known;
// field is where the object can name one.
func MissingRunner(field string) string {
	return fmt.Sprintf("No image of the execution environment is set, so nothing is run: set %s and %s in the environment of the manager (make deploy RUNNER_IMG=...), or %s", ansibleEE, novaAnsibleEE, field)
}

// Defaults are the images for specs that name none.
type Defaults struct {
	NovaCompute   string
	NovaLibvirt   string
	NovaAnsibleEE string
	AnsibleEE     string
	NovaConductor string
	NovaAPI       string
	NovaScheduler string
	NovaNoVNC     string
	GlanceAPI     string
	// OVNController and OVNMetadataAgent on hosts.
	OVNController    string
	OVNMetadataAgent string
}

// From returns the defaults that the variables found by lookup give. A
// variable that is missing or empty leaves the fallback, if there is one.
func From(lookup func(string) (string, bool)) Defaults {
	get := func(variable, fallback string) string {
		if image, ok := lookup(variable); ok && image != "" {
			return image
		}
		return fallback
	}
	const podified = "quay.io/podified-antelope-centos9/"
	return Defaults{
		NovaCompute:   get("RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT", podified+"openstack-nova-compute:current-podified"),
		NovaLibvirt:   get("RELATED_IMAGE_NOVA_LIBVIRT_IMAGE_URL_DEFAULT", podified+"openstack-nova-libvirt:current-podified"),
		NovaAnsibleEE: get(novaAnsibleEE, ""),
		AnsibleEE:     get(ansibleEE, ""),
		NovaConductor: get("RELATED_IMAGE_NOVA_CONDUCTOR_IMAGE_URL_DEFAULT", podified+"openstack-nova-conductor:current-podified"),
		NovaAPI:       get("RELATED_IMAGE_NOVA_API_IMAGE_URL_DEFAULT", podified+"openstack-nova-api:current-podified"),
		NovaScheduler: get("RELATED_IMAGE_NOVA_SCHEDULER_IMAGE_URL_DEFAULT", podified+"openstack-nova-scheduler:current-podified"),
		NovaNoVNC:     get("RELATED_IMAGE_NOVA_NOVNC_IMAGE_URL_DEFAULT", podified+"openstack-nova-novncproxy:current-podified"),
		GlanceAPI:     get("RELATED_IMAGE_GLANCE_API_IMAGE_URL_DEFAULT", podified+"openstack-glance-api:current-podified"),

		OVNController:    get("RELATED_IMAGE_OVN_CONTROLLER_AGENT_IMAGE_URL_DEFAULT", podified+"openstack-ovn-controller:current-podified"),
		OVNMetadataAgent: get("RELATED_IMAGE_EDPM_NEUTRON_METADATA_AGENT_IMAGE_URL_DEFAULT", podified+"openstack-neutron-metadata-agent-ovn:current-podified"),
	}
}

// Env returns the defaults of the environment of the process, which is read once.
var Env = sync.OnceValue(func() Defaults { return From(os.LookupEnv) })
