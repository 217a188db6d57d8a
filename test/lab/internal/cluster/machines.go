package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// machineImage is what is "written" to the disk of a machine: edpm-host with
// cloud-init.
const machineImage = "edpm-machine"

// Machine is a computer that is set up at its first boot: a host whose only
// configuration is what cloud-init finds on its configuration drive.
type Machine struct {
	Name, MAC string
	// UserData and NetworkData of its configuration drive.
	UserData, NetworkData []byte
}

// machinesIfWanted gets everything in place that machines need to boot quickly.
func (l *Lab) machinesIfWanted(ctx context.Context, o Options) error {
	if !o.Machines {
		return nil
	}
	if _, err := l.imageScript(ctx, "store.sh"); err != nil {
		return err
	}
	return l.loadHostImage(ctx, machineImage)
}

// Boot starts a machine with an empty disk, whatever was on it before.
func (l *Lab) Boot(ctx context.Context, m Machine) error {
	if err := l.Wipe(ctx, m.Name); err != nil {
		return err
	}
	drive, err := l.configDrive(m)
	if err != nil {
		return err
	}
	store, err := l.imageScript(ctx, "store.sh")
	if err != nil {
		return err
	}
	return l.createHost(ctx, machine{Host: Host{Name: m.Name}, image: machineImage, store: store, mac: m.MAC, drive: drive})
}

// configDrive writes the files of a configuration drive, and returns their directory.
// https://docs.openstack.org/nova/latest/user/metadata.html
func (l *Lab) configDrive(m Machine) (string, error) {
	dir := l.path("machines", m.Name)
	latest := filepath.Join(dir, "openstack", "latest")
	if err := os.MkdirAll(latest, 0o700); err != nil {
		return "", fmt.Errorf("making the configuration drive of %s: %w", m.Name, err)
	}
	for name, content := range map[string][]byte{
		"meta_data.json": fmt.Appendf(nil, `{"uuid": %q, "name": %q}`, m.Name, m.Name), "user_data": m.UserData, "network_data.json": m.NetworkData,
	} {
		if err := os.WriteFile(filepath.Join(latest, name), content, 0o600); err != nil {
			return "", fmt.Errorf("making the configuration drive of %s: %w", m.Name, err)
		}
	}
	return dir, nil
}

// Wipe stops a machine and removes everything on its disk. One that never booted
// has none.
func (l *Lab) Wipe(ctx context.Context, name string) error {
	container, err := command(ctx, "podman", "container", "inspect", "--format", `{{index .Config.Labels "`+hostLabel+`"}} {{.ImageName}}`, name)
	if err == nil && container != l.Dir+" "+imageTag(machineImage) {
		return fmt.Errorf("podman has a container %s that is no machine of this lab", name)
	}
	if _, err := l.podman(ctx, "rm", "--force", "--ignore", "--time", "0", name); err != nil {
		return err
	}
	if _, err := l.podman(ctx, "volume", "rm", "--force", volumeOf(name)); err != nil {
		return err
	}
	return os.RemoveAll(l.path("machines", name))
}
