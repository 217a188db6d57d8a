package identity

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/edpm-operators/edpm-operators/internal/oslo"
)

func lines(t testing.TB, service Service, text string) []int {
	t.Helper()
	config, err := oslo.Parse(text)
	if err != nil {
		t.Fatalf("%q is no configuration: %v", text, err)
	}
	var found []int
	for _, f := range Find(service, config) {
		found = append(found, f.Line)
	}
	return found
}

func TestFindsWhatWouldMakeAnotherServiceAsOsloConfigReadsIt(t *testing.T) {
	for name, tt := range map[string]struct {
		service Service
		text    string
		want    []int
	}{
		"the name of the host":                           {HostCompute, "[DEFAULT]\nhost = other\n", []int{2}},
		"with a colon and no space":                      {HostCompute, "[DEFAULT]\nhost:other\n", []int{2}},
		"with spaces around the key":                     {HostCompute, "[DEFAULT]\nhost\t\u00a0= other\n", []int{2}},
		"with lines of another system":                   {HostCompute, "[DEFAULT]\r\nhost = other\r\n", []int{2}},
		"with the value in the next line":                {HostCompute, "[DEFAULT]\nhost =\n  other\n", []int{2}},
		"with no value, which is a name as well":         {HostCompute, "[DEFAULT]\nhost =\n", []int{2}},
		"each time":                                      {HostCompute, "[DEFAULT]\nhost = a\n[libvirt]\n[DEFAULT]\nhost = b\n", []int{2, 5}},
		"the message bus":                                {HostCompute, "[DEFAULT]\ntransport_url = rabbit://h\n", []int{2}},
		"the exchange on the message bus":                {HostCompute, "[DEFAULT]\ncontrol_exchange = x\n", []int{2}},
		"another place with options":                     {HostCompute, "[DEFAULT]\nconfig_source = web\n[web]\ndriver = remote_file\n", []int{2}},
		"another libvirt, in a section of other case":    {HostCompute, "[LibVirt]\nconnection_uri = qemu+tls://h/\n", []int{2}},
		"another driver":                                 {HostCompute, "[DEFAULT]\ncompute_driver = fake.FakeDriver\n", []int{2}},
		"the database":                                   {PodNova, "[database]\nconnection = x\n[API_DATABASE]\nconnection = x\n", []int{2, 4}},
		"the database by its earlier names":              {PodNova, "[DEFAULT]\nsql_connection = x\n[DATABASE]\nsql_connection = x\n[sql]\nconnection = x\n", []int{2, 4, 6}},
		"the name of a service in pods":                  {PodNova, "[DEFAULT]\nhost = x\n", []int{2}},
		"the name of a compute in pods":                  {PodCompute, "[DEFAULT]\nhost = x\n", []int{2}},
		"the southbound database":                        {MetadataAgent, "[ovn]\novn_sb_connection = tcp:192.0.2.1:6642\n[OVS]\novsdb_connection = tcp:192.0.2.1:6640\n", []int{2, 4}},
		"the name of a service of a class":               {Partner, "[DEFAULT]\nhost = x\ntransport_url = y\n[database]\nconnection = z\n", []int{2, 3, 5}},
		"not a key of other case, which oslo ignores":    {HostCompute, "[DEFAULT]\nHost = other\nHOST = other\ntransport-url = x\n", nil},
		"not DEFAULT in other case, which is a section":  {HostCompute, "[default]\nhost = other\n[Default]\nhost = other\n[DEFAULT ]\nhost = other\n", nil},
		"not the same key in another section":            {HostCompute, "[vnc]\nhost = other\n[oslo_messaging_notifications]\ntransport_url = rabbit://h\n", nil},
		"not a longer key":                               {HostCompute, "[DEFAULT]\nhost_name = x\nmy_ip = 192.0.2.1\nconsole_host = x\n", nil},
		"not what continues another value":               {HostCompute, "[DEFAULT]\nlog_dir = a\n  host = other\n", nil},
		"not a comment":                                  {HostCompute, "[DEFAULT]\n# host = other\n;transport_url = x\n", nil},
		"not what a compute may be given on its host":    {HostCompute, "[DEFAULT]\nstate_path = /x\ninstances_path = /y\n", nil},
		"not a replica of the database":                  {PodNova, "[database]\nslave_connection = x\n", nil},
		"not the database of glance, which has no cell":  {Image, "[DEFAULT]\ntransport_url = x\n[database]\nconnection = x\n", nil},
		"not what a class says of all its services":      {Class, "[DEFAULT]\nhost = x\ntransport_url = y\n", nil},
		"not the driver of services that have none":      {PodNova, "[DEFAULT]\ncompute_driver = x\n[libvirt]\nconnection_uri = x\n", nil},
		"not the bus of an agent that does not have one": {MetadataAgent, "[DEFAULT]\ntransport_url = x\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, lines(t, tt.service, tt.text)); diff != "" {
				t.Errorf("lines of %q for %s (-want +got):\n%s", tt.text, tt.service, diff)
			}
		})
	}
}

func TestErrorsNameLineOptionAndRemedyAndNoValue(t *testing.T) {
	config, err := oslo.Parse("[DEFAULT]\nhost = n4me\ntransport_url = rabbit://u:hunter2@h\n" + strings.Repeat("host = hunter2\n", 10))
	if err != nil {
		t.Fatal(err)
	}
	text := Check(HostCompute, config).Error()
	for _, want := range []string{
		"line 2: [DEFAULT] host registers the host as another compute, without its guests: remove it; ",
		"\nline 3: [DEFAULT] transport_url connects it to another message bus, that of another cell: set it in the Secret", "\nand 2 more",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in %q", want, text)
		}
	}
	if strings.Contains(text, "hunter2") || strings.Contains(text, "n4me") {
		t.Errorf("a value is shown: %q", text)
	}
	if err := Check(PodNova, mustParse(t, "[DEFAULT]\ndebug = true\n")); err != nil {
		t.Errorf("want no error, got %v", err)
	}
}

func mustParse(t testing.TB, text string) *oslo.Config {
	t.Helper()
	config, err := oslo.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// The page has the table as it is here.
func TestTheTableIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/how-to/custom-service-config.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "\n"+Markdown()+"\n") {
		t.Errorf("docs/how-to/custom-service-config.md should have this table:\n%s", Markdown())
	}
}

// Whatever is put before and after it, a line that sets an option in its section is
// found, and nothing is found in a text from which it is taken again.
func FuzzFind(f *testing.F) {
	for _, text := range []string{"", "[libvirt]\nvirt_type = qemu\n", "[DEFAULT]\ndebug = true\n  more\n", "# [DEFAULT]\n", "[a]\nb=c\n\n\t\n;x\n"} {
		f.Add(text, text)
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		whole := before + "\n[DEFAULT]\nhost = x\n\n" + after
		config, err := oslo.Parse(whole)
		if err != nil {
			return
		}
		without := mustParse(t, before+"\n[DEFAULT]\n\n"+after)
		others := Find(HostCompute, without)
		if got := Find(HostCompute, config); len(got) != len(others)+1 {
			t.Errorf("%d findings in %q, want one more than the %d without the line", len(got), whole, len(others))
		}
		set := slices.ContainsFunc(others, func(f Finding) bool { return strings.Contains(f.Message, "[DEFAULT] host ") })
		if set != (without.Get("DEFAULT", "host") != nil) {
			t.Errorf("host is found: %v, and the service reads %q", set, without.Get("DEFAULT", "host"))
		}
	})
}
