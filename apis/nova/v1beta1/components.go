package v1beta1

// Components in status.images of a Nova, a NovaCell and of computes.
const (
	APIComponent        = "api"
	SchedulerComponent  = "scheduler"
	ConductorComponent  = "conductor"
	MetadataComponent   = "metadata"
	NoVNCProxyComponent = "noVNCProxy"
	ComputeComponent    = "compute"
	LibvirtComponent    = "libvirt"
)

// UpdateOrder are the steps of an update of a Nova with the components whose images they replace, once
// the API database has its new schema:
// https://docs.openstack.org/nova/latest/admin/upgrades.html#rolling-upgrade-process
var UpdateOrder = []struct {
	Name       string
	Components []string
}{
	{"conductors", []string{ConductorComponent}},
	{"scheduler", []string{SchedulerComponent}},
	{"metadata services and console proxies", []string{MetadataComponent, NoVNCProxyComponent}},
	{"API", []string{APIComponent}},
	{"computes", []string{ComputeComponent}},
}
