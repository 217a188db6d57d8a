// Package images knows the container images that are used when a spec names
// none. The defaulting webhooks and the controllers share it, so that an
// object that was admitted while the webhook was away gets the same images.
//
// The names of the variables are those of the OpenStack operators (nova-operator
// api/v1beta1/common_types.go, and for OVN on hosts openstack-operator
// api/dataplane/v1beta1); OLM fills the variables and mirrors what they name. There
// are no fallbacks: a tag that moves would be another release on each Kubernetes node.
package images

import (
	"cmp"
	"fmt"
	"os"
	"sync"
)

// The variables.
const (
	ansibleEE        = "RELATED_IMAGE_ANSIBLEEE_IMAGE_URL_DEFAULT"
	novaAnsibleEE    = "RELATED_IMAGE_NOVA_ANSIBLE_EE_IMAGE_URL_DEFAULT"
	novaCompute      = "RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT"
	novaLibvirt      = "RELATED_IMAGE_NOVA_LIBVIRT_IMAGE_URL_DEFAULT"
	novaConductor    = "RELATED_IMAGE_NOVA_CONDUCTOR_IMAGE_URL_DEFAULT"
	novaAPI          = "RELATED_IMAGE_NOVA_API_IMAGE_URL_DEFAULT"
	novaScheduler    = "RELATED_IMAGE_NOVA_SCHEDULER_IMAGE_URL_DEFAULT"
	novaNoVNC        = "RELATED_IMAGE_NOVA_NOVNC_IMAGE_URL_DEFAULT"
	glanceAPI        = "RELATED_IMAGE_GLANCE_API_IMAGE_URL_DEFAULT"
	ovnController    = "RELATED_IMAGE_OVN_CONTROLLER_AGENT_IMAGE_URL_DEFAULT"
	ovnMetadataAgent = "RELATED_IMAGE_EDPM_NEUTRON_METADATA_AGENT_IMAGE_URL_DEFAULT"
)

// variables of the images of programs.
var variables = map[string]string{
	"nova-compute": novaCompute, "libvirt": novaLibvirt, "nova-conductor": novaConductor, "nova-api-os-compute": novaAPI, "nova-api-metadata": novaAPI,
	"nova-scheduler": novaScheduler, "nova-novncproxy": novaNoVNC, "glance-api": glanceAPI, "ovn-controller": ovnController, "ovn-metadata": ovnMetadataAgent,
}

// Missing returns what to say where no image of a program is known.
func Missing(program string) string {
	return fmt.Sprintf("No image of %s is set, so it is not deployed: set %s in the environment of the manager, or an image in the spec",
		program, cmp.Or(variables[program], "the variable RELATED_IMAGE_... for it"))
}

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

// From returns the defaults that the variables found by lookup give, empty for those
// that are missing.
func From(lookup func(string) (string, bool)) Defaults {
	get := func(variable string) string {
		image, _ := lookup(variable)
		return image
	}
	return Defaults{
		NovaCompute:   get(novaCompute),
		NovaLibvirt:   get(novaLibvirt),
		NovaAnsibleEE: get(novaAnsibleEE),
		AnsibleEE:     get(ansibleEE),
		NovaConductor: get(novaConductor),
		NovaAPI:       get(novaAPI),
		NovaScheduler: get(novaScheduler),
		NovaNoVNC:     get(novaNoVNC),
		GlanceAPI:     get(glanceAPI),

		OVNController:    get(ovnController),
		OVNMetadataAgent: get(ovnMetadataAgent),
	}
}

// Env returns the defaults of the environment of the process, which is read once.
var Env = sync.OnceValue(func() Defaults { return From(os.LookupEnv) })
