// Package dataplane admits the kinds of the data plane. It knows no OpenStack
// service: the cell of a compute is the business of package nova (seeds/004).
//
// The controllers check the same inputs and say so in the condition InputReady,
// so these webhooks may be away without harm, and are deployed to be ignored
// then.
package dataplane
