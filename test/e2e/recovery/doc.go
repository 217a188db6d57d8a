// Package recovery tells what becomes of a lab when another one wants its ports, and
// when the machine was rebooted while it was up. The control plane is real; the reboot is
// played: all its processes are killed, and their records are of an earlier boot.
//
//	E2E_LONG=1 go test ./test/e2e/recovery
//
// It needs no root, and is part of make e2e-all only.
package recovery
