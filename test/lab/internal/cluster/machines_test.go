package cluster

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

func TestAConfigDriveHasWhatCloudInitReads(t *testing.T) {
	lab := &Lab{Layout: Layout{Dir: t.TempDir()}}
	drive, err := lab.configDrive(Machine{Name: "machine-0", UserData: []byte("#cloud-config\n"), NetworkData: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"user_data": "#cloud-config\n", "network_data.json": "{}"} {
		path := filepath.Join(drive, "openstack", "latest", name)
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v; want %q", name, got, err, want)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s can be read by others: %v, %v", name, info.Mode(), err)
		}
	}
	text, err := os.ReadFile(filepath.Join(drive, "openstack", "latest", "meta_data.json"))
	if err != nil {
		t.Fatal(err)
	}
	meta := map[string]string{}
	if err := json.Unmarshal(text, &meta); err != nil || meta["uuid"] != "machine-0" {
		t.Errorf("meta_data.json has %q, %v", text, err)
	}
}
