package glanceapi

import (
	"strings"
	"testing"

	"github.com/edpm-operators/edpm-operators/internal/oslo"
	"github.com/edpm-operators/edpm-operators/internal/podified"
)

func TestGlanceReadsWhatItIsGiven(t *testing.T) {
	for name, c := range map[string]struct {
		inputs configInputs
		want   map[[2]string]string // "" : not set
	}{
		"with nothing but its port": {configInputs{Port: 9292, FileStore: true, Connection: ownDatabase}, map[[2]string]string{
			{"DEFAULT", "bind_port"}: "9292", {"DEFAULT", "enabled_backends"}: "default_backend:file", {"glance_store", "default_backend"}: "default_backend",
			{"database", "connection"}: "sqlite:////var/lib/glance/glance.sqlite", {"paste_deploy", "flavor"}: "keystone", {"keystone_authtoken", "auth_url"}: "",
		}},
		"with backends and a database that people name": {configInputs{Port: 9292}, map[[2]string]string{
			{"DEFAULT", "enabled_backends"}: "", {"glance_store", "default_backend"}: "", {"database", "connection"}: "",
			{"os_glance_staging_store", "filesystem_store_datadir"}: "/var/lib/glance/os_glance_staging_store",
		}},
		"with an identity service": {configInputs{KeystoneAuthURL: "http://k:5000", ServiceUser: "glance", ServicePassword: "a$b"}, map[[2]string]string{
			{"keystone_authtoken", "auth_url"}: "http://k:5000", {"keystone_authtoken", "password"}: "a$$b", {"keystone_authtoken", "username"}: "glance",
		}},
		"with a database server": {configInputs{Connection: podified.MySQL("db", "glance", "p@s/s%", "glance")}, map[[2]string]string{
			{"database", "connection"}: "mysql+pymysql://glance:p%40s%2Fs%25@db/glance?charset=utf8",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := c.inputs.render()
			if err != nil {
				t.Fatal(err)
			}
			config, err := oslo.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			for option, want := range c.want {
				if got := strings.Join(config.Get(option[0], option[1]), "|"); got != want {
					t.Errorf("[%s] %s is %q; want %q", option[0], option[1], got, want)
				}
			}
		})
	}
}

func TestAPasswordWithALineBreakIsRefusedUnseen(t *testing.T) {
	_, err := configInputs{KeystoneAuthURL: "http://k", ServicePassword: "hunter2\nx = y"}.render()
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error is %v", err)
	}
}
