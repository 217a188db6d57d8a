package v1beta1

// APIComponent in status.images is glance-api.
const APIComponent = "api"
