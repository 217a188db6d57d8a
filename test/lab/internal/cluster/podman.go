package cluster

import (
	"context"
	"fmt"
	"strings"
)

// lockMismatch is what podman says of a container whose lock is that of its volume too.
const lockMismatch = "deadlock due to lock mismatch"

// podman runs podman, and has it number its locks again if they got lost. They are in
// shared memory, and podman notices a reboot by /run/libpod: on a machine that keeps
// /run it does not, and gives a new container the lock of a volume from before.
func (l *Lab) podman(ctx context.Context, args ...string) (string, error) {
	out, err := command(ctx, "podman", args...)
	if err == nil || !strings.Contains(err.Error(), lockMismatch) {
		return out, err
	}
	if err := l.renumberLocks(ctx, err); err != nil {
		return "", err
	}
	return command(ctx, "podman", args...)
}

// renumberLocks gives every container and volume a lock of its own, if that disturbs
// nothing but this lab: containers should not be in use meanwhile.
func (l *Lab) renumberLocks(ctx context.Context, cause error) error {
	all, err := command(ctx, "podman", "ps", "--format", `{{.Names}} {{index .Labels "`+hostLabel+`"}}`)
	if err != nil {
		return err
	}
	for line := range strings.Lines(all) {
		name, owner, _ := strings.Cut(line, " ")
		if strings.TrimSpace(owner) != l.Dir {
			return fmt.Errorf("%w\npodman has lost its locks in a reboot. Stop container %s and all others that are not of this lab, run podman system renumber, and try again", cause, name)
		}
	}
	l.logf("podman has lost its locks in a reboot, and numbers them again")
	_, err = command(ctx, "podman", "system", "renumber")
	return err
}
