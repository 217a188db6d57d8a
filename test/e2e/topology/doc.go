// Package topology replays seeds/000, 001 and 002 on the real kube-scheduler:
// the seven nodes of the seeds, their YAML as it stands there, and what their
// listings show; and seeds/003, the OSDs of Ceph, with the numbers that it promises.
// API server, scheduler and controllers are real, and so is the manager with its
// webhooks; KWOK plays the kubelets. The suite plays what provides volumes, such as
// LVMS, the storage of the seeds, whose volumes never leave their node; and Rook,
// since there is no Ceph: it makes the claims and pods that Rook would make of a
// CephCluster, and nothing else.
//
//	go test ./test/e2e/topology
//
// It needs no root, and is skipped with -short. Where the scheduler is free to
// choose among nodes, the stories expect what must be true of every choice.
//
//	E2E_KEEP=1   leave the cluster and the files of the suite at the end
package topology
