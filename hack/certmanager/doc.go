// Package certmanager tests config/overlays/cert-manager with the types and the
// resource definitions of cert-manager.
package certmanager
