package conditions

import (
	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
)

const metalTable = "metal"

// ofMachine is what a node reports of its BareMetalHost.
func ofMachine() Table {
	return Table{Name: metalTable, Title: "reasons of a machine", Kinds: []string{node}, Link: "openstackdataplanenode.md#bare-metal", Conditions: []Condition{
		{Type: dataplanev1.ProvisionReadyCondition, Means: "the BareMetalHost of the node runs its image, and a run has reached it", Reasons: []Reason{
			{dataplanev1.InvalidSpecReason, "`baremetalSetTemplate`, or the user data or network data that it refers to, cannot be used; the message names the field", "correct the field, or set `preProvisioned: true` if the hosts run already"},
			{common.SecretMissingReason, "a Secret with user data, network data or certificates does not exist", createInput},
			{common.SecretKeyMissingReason, "the Secret does not have the key that the message names", createInput},
			{common.SecretForbiddenReason, noRight, grantSecrets},
			{common.SecretLimitReason, noRoom, fewerSecrets},
			{common.ConflictReason, "a Secret with the name of the one that the machine boots with exists already, and was not created for this node", removeOwn},
			{dataplanev1.MetalKindMissingReason, "the resource definition of BareMetalHost does not exist", "install baremetal-operator (Metal3), or set `preProvisioned: true` in the role; it continues automatically"},
			{dataplanev1.MetalNoneFreeReason, "no BareMetalHost of the namespace is free and fits; the message says how many there are, and what is wrong with each", "register machines, or correct what the message names; it continues automatically when one is free"},
			{dataplanev1.MetalHostLostReason, "the BareMetalHost of the node no longer exists, is being deleted, or is no longer claimed by the node. The machine is left alone", "restore the object or its `spec.consumerRef`, or set annotation `edpm.openstack.org/replace-host` to have another machine"},
			{dataplanev1.MetalRegisteringReason, "baremetal-operator registers the machine, or has not looked at it yet", "wait; if it does not end, see whether baremetal-operator runs, and the credentials of the BMC"},
			{dataplanev1.MetalInspectingReason, "baremetal-operator inspects the machine", patience},
			{dataplanev1.MetalPreparingReason, "baremetal-operator prepares the machine", patience},
			{dataplanev1.MetalProvisioningReason, "the node has chosen a machine, or the image is being written to it", "wait; if it does not end, see whether baremetal-operator runs, and the console of the machine"},
			{dataplanev1.MetalErrorReason, "baremetal-operator reports an error; the message has its type and text", "correct what the message names, which baremetal-operator tries again, or set annotation `edpm.openstack.org/replace-host` to have another machine"},
			{dataplanev1.MetalPausedReason, "the BareMetalHost is paused", "remove annotation `baremetalhost.metal3.io/paused`"},
			{dataplanev1.MetalPoweredOffReason, "the machine is powered off", "set `spec.online: true` of the BareMetalHost; if it is, see its events"},
			{dataplanev1.MetalDeprovisionedReason, "somebody else has deprovisioned the machine, or it was made externally provisioned", "find out who; the node does not provision it again. Set annotation `edpm.openstack.org/replace-host` to have another machine"},
			{dataplanev1.MetalAddressUnknownReason, "the machine runs its image, and its address is not known, or is that of another node", "set `spec.ansibleHost`"},
			{dataplanev1.MetalHostKeyUnknownReason, "the machine runs, and the Secret with the key that was generated for it is lost", "copy the public key from its console into annotation `edpm.openstack.org/host-key` of the node"},
			{dataplanev1.MetalReplaceRefusedReason, "annotation `edpm.openstack.org/replace-host` asks for another machine, and the message says what is in the way", "correct what the message names, or remove the annotation"},
			{dataplanev1.MetalWriteRefusedReason, "a write to the BareMetalHost is refused, by baremetal-operator's webhook or another rule of the cluster, or the webhook does not answer; the message has its words", "correct the BareMetalHost or the webhook, and it continues automatically; to have another machine, set annotation `baremetalhost.metal3.io/paused` on the BareMetalHost; to delete the node and leave the machine as it is, annotation `edpm.openstack.org/skip-cleanup: \"true\"` on the node"},
			{dataplanev1.MetalReleasingReason, "the node is being deleted, or its machine replaced, and waits until that is deprovisioned", "wait; if it does not end, see the events of the BareMetalHost, or set annotation `edpm.openstack.org/skip-cleanup: \"true\"` on the node"},
		}},
	}}
}
