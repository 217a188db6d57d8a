// Package podified tells stories of podified services on a cluster whose API
// server, scheduler, StatefulSet controller and garbage collector are those of
// Kubernetes. Pretended are only the nodes of seeds/001, their kubelets and the
// volumes on their disks.
package podified
