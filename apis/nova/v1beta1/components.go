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
