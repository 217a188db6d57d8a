package nova

import (
	"strings"
	"testing"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/oslo"
)

func inputsOf(change func(*Config)) Config {
	c := Config{
		Owner: "NovaCell nova-cell1", TransportURL: "rabbit://u:p$1@bus/", ServicePassword: " s ", KeystoneAuthURL: "http://k:5000", ServiceUser: "nova",
		Keystone:   novav1.KeystoneScope{Region: "regionOne", UserDomainName: "Default", ProjectDomainName: "Default"},
		Connection: "mysql+pymysql://nova:d@db/nova_cell1",
	}
	change(&c)
	return c
}

func TestTheConductorReadsWhatItIsGiven(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		want   map[[2]string]string // "" : not set
	}{
		"without the API database": {func(*Config) {}, map[[2]string]string{
			{"DEFAULT", "transport_url"}: "rabbit://u:p$$1@bus/", {"database", "connection"}: "mysql+pymysql://nova:d@db/nova_cell1",
			{"api_database", "connection"}: "", {"keystone_authtoken", "password"}: " s ", {"keystone_authtoken", "www_authenticate_uri"}: "http://k:5000", {"placement", "region_name"}: "regionOne", {"DEFAULT", "log_dir"}: "", {"DEFAULT", "use_stderr"}: "true",
		}},
		"with the API database": {func(c *Config) { c.APIConnection = "mysql+pymysql://nova:a@api/nova_api" }, map[[2]string]string{
			{"api_database", "connection"}: "mysql+pymysql://nova:a@api/nova_api",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := inputsOf(c.change).Service()
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

func TestComputesAreToldNothingOfDatabases(t *testing.T) {
	text, err := inputsOf(func(c *Config) { c.APIConnection = "mysql+pymysql://nova:a@api/nova_api" }).Compute()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "mysql") {
		t.Error("the configuration of computes, which leaves the cluster, has a database in it")
	}
}

func TestAPasswordWithALineBreakIsRefusedUnseen(t *testing.T) {
	for _, name := range []string{computeTemplate, serviceTemplate} {
		_, err := render(name, inputsOf(func(c *Config) { c.ServicePassword = "hunter2\nx = y" }))
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}
