package nova

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

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

func TestTheMappingOfACellHasTheConnectionOfItsServices(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"in clear":               {func(*Config) {}, "rabbit://u:p$1@bus/\nmysql+pymysql://nova:d@db/nova_cell1"},
		"verified":               {func(c *Config) { c.DatabaseTLS = true }, "rabbit://u:p$1@bus/\nmysql+pymysql://nova:d@db/nova_cell1&ssl_ca=/etc/nova/nova.conf.d/tls-ca-bundle.pem"},
		"with other authorities": {func(c *Config) { c.Authorities = []byte("a") }, "rabbit://u:p$1@bus/\nmysql+pymysql://nova:d@db/nova_cell1"},
	} {
		if got := string(inputsOf(c.change).Mapping()); got != c.want {
			t.Errorf("%s it is %q; want %q", name, got, c.want)
		}
	}
}

func TestNotificationsHaveTheQueuesOfTheirMessageBus(t *testing.T) {
	const other = "rabbit://n:p@elsewhere/"
	yes, no := ptr.To(true), ptr.To(false)
	for name, c := range map[string]struct {
		url    string
		quorum *bool
		cell   bool
		want   string
	}{
		"without a word they are as the cell's": {other, nil, true, other},
		"the same type needs no word":           {other, yes, true, other},
		"classic ones":                          {other, no, true, other + "?amqp_durable_queues=false&rabbit_quorum_queue=false&rabbit_transient_quorum_queue=false"},
		"quorum queues":                         {other, yes, false, other + "?amqp_durable_queues=true&rabbit_quorum_queue=true&rabbit_transient_quorum_queue=true"},
		"in the virtual host of the cell":       {"rabbit://n:p@bus:5671/?ssl=1", no, true, "rabbit://n:p@bus:5671/?ssl=1"},
		"no notifications":                      {"", no, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			config := inputsOf(func(*Config) {})
			config.NotificationsURL, config.notificationsQuorum = c.url, c.quorum
			config.UseQueues(busStatus(config.TransportURL, c.cell, nil))
			if config.NotificationsURL != c.want || config.QuorumQueues != c.cell {
				t.Errorf("the URL is %s, and the cell has quorum queues: %t; want %s", config.NotificationsURL, config.QuorumQueues, c.want)
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

func TestComputesAreConfiguredAgainForInputsAlone(t *testing.T) {
	base := inputsOf(func(*Config) {})
	for name, c := range map[string]struct {
		change    func(*Config)
		isAnother bool
	}{
		"nothing":                         {func(*Config) {}, false},
		"who makes it":                    {func(c *Config) { c.Owner = "Nova nova" }, false},
		"a database":                      {func(c *Config) { c.Connection, c.APIConnection = "x", "y" }, false},
		"what only services in pods read": {func(c *Config) { c.MemcachedServers, c.TLSDir, c.MetadataSecret = []string{"m"}, "d", "s" }, false},
		"the message bus":                 {func(c *Config) { c.TransportURL = "rabbit://other/" }, true},
		"a password":                      {func(c *Config) { c.ServicePassword = "other" }, true},
		"the queues":                      {func(c *Config) { c.QuorumQueues = true }, true},
		"a console":                       {func(c *Config) { c.NoVNCProxyBaseURL = "http://console" }, true},
		"a region":                        {func(c *Config) { c.Keystone.Region = "other" }, true},
		"a CA":                            {func(c *Config) { c.Keystone.CAFile = "/etc/ca.pem" }, true},
		"the user":                        {func(c *Config) { c.ServiceUser = "other" }, true},
		"keystone":                        {func(c *Config) { c.KeystoneAuthURL = "http://other" }, true},
	} {
		other := inputsOf(c.change)
		if got := other.ComputeInputs() != base.ComputeInputs(); got != c.isAnother {
			t.Errorf("%s: it is another configuration: %t; want %t", name, got, c.isAnother)
		}
		for _, from := range []Config{base, other} {
			text, err := from.Compute()
			if err != nil {
				t.Fatal(err)
			}
			to := base
			if from.ComputeInputs() == base.ComputeInputs() {
				to = other
			}
			if got := !to.HasMade("# earlier\n" + text); got != c.isAnother {
				t.Errorf("%s: a text is of another configuration: %t; want %t", name, got, c.isAnother)
			}
		}
	}
	if base.ComputeInputs() != inputsOf(func(c *Config) { c.NotificationsURL = "" }).ComputeInputs() {
		t.Error("a field that is not set counts")
	}
	if base.HasMade("no configuration") {
		t.Error("what oslo.config does not read is taken for a configuration")
	}
}
