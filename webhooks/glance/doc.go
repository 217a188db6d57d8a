// Package glance admits the kinds of the image service. The rules are those of
// glance-operator (api/v1beta1/glance_webhook.go), with what to write instead.
package glance
