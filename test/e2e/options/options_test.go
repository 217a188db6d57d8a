package options

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	podifiedv1 "github.com/edpm-operators/edpm-operators/apis/common/podified"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova"
	"github.com/edpm-operators/edpm-operators/internal/nova/furtherfiles"
	"github.com/edpm-operators/edpm-operators/internal/nova/furtherfiles/content"
	"github.com/edpm-operators/edpm-operators/internal/oslo"
	"github.com/edpm-operators/edpm-operators/internal/podified"
	"github.com/edpm-operators/edpm-operators/test/envtest"
)

const (
	novaTemplates   = "internal/nova/templates"
	driverTemplate  = "controllers/nova/novacompute/templates/driver.conf"
	roleDir         = "ansible/roles/edpm_nova"
	hostTemplate    = roleDir + "/templates/01-nova-host.conf.j2"
	programTemplate = novaTemplates + "/program.ini"
)

// releases are the supported ones, by the name of their image in test/lab/images.
var releases = map[string]struct {
	// hasPrograms reports whether the API and the metadata service are programs, with
	// options that other releases have removed.
	hasPrograms bool
}{
	"nova":        {hasPrograms: true},
	"nova-newest": {},
}

// control has what the comparison is to find.
const control = `[DEFAULT]
debgu = true
compute_monitors = cpu.virt_driver
logdir = /tmp
[libvirt]
num_pcie_ports = many
[keystone_authtoken]
usrname = nova
[database]
idle_timeout = 1
[workarounds]
disable_fallback_pcpu_query = true
[no_such_section]
workers = 1
`

// found is what the comparison says of control, and how it ends.
var found = []string{
	"control: [DEFAULT] debgu is unknown",
	"control: [DEFAULT] logdir is deprecated",
	"control: [database] idle_timeout is unknown",
	"control: [keystone_authtoken] usrname is unknown",
	"control: [libvirt] num_pcie_ports has a value that is not valid: ",
	"control: [no_such_section] workers is unknown",
	"control: [workarounds] disable_fallback_pcpu_query is deprecated and will be removed",
}

// values are what nova is to have for options that matter, by process, section and option:
// their defaults would be wrong, or other options have them by substitution.
var values = map[[3]string]string{
	{"compute-full", "DEFAULT", "debug"}:                                         "False",
	{"compute-full", "DEFAULT", "use_stderr"}:                                    "True",
	{"compute-full", "vnc", "server_listen"}:                                     "192.0.2.1",
	{"compute-full", "vnc", "server_proxyclient_address"}:                        "192.0.2.1",
	{"compute-full", "libvirt", "mem_stats_period_seconds"}:                      "10",
	{"compute-full", "barbican", "auth_endpoint"}:                                "https://k:5000",
	{"compute-full", "barbican", "barbican_endpoint_type"}:                       "internal",
	{"compute-full", "barbican", "barbican_region_name"}:                         "r",
	{"compute-full", "barbican", "verify_ssl_path"}:                              "/etc/ca.pem",
	{"compute-full", "key_manager", "backend"}:                                   "barbican",
	{"compute-full", "oslo_messaging_notifications", "driver"}:                   "['messagingv2']",
	{"compute-full", "oslo_messaging_notifications", "transport_url"}:            "rabbit://n:p@bus/",
	{"compute-full", "notifications", "notify_on_state_change"}:                  "vm_and_task_state",
	{"compute-full", "notifications", "notification_format"}:                     "unversioned",
	{"compute-full", "libvirt", "virt_type"}:                                     "qemu",
	{"compute-full", "libvirt", "volume_use_multipath"}:                          "True",
	{"compute-full", "libvirt", "live_migration_scheme"}:                         "tls",
	{"compute-full", "libvirt", "live_migration_with_native_tls"}:                "True",
	{"compute-full", "libvirt", "live_migration_inbound_addr"}:                   "192.0.2.2",
	{"compute-full", "libvirt", "migration_inbound_addr"}:                        "192.0.2.2",
	{"compute-full", "workarounds", "skip_cpu_compare_on_dest"}:                  "True",
	{"compute-full", "api", "vendordata_jsonfile_path"}:                          "/etc/nova/nova.conf.d/vendor_data.json",
	{"compute-full", "compute", "provider_config_location"}:                      "/etc/nova/nova.conf.d/provider_config",
	{"compute-bare", "libvirt", "virt_type"}:                                     "kvm",
	{"api-full", "api", "vendordata_jsonfile_path"}:                              "/etc/nova/nova.conf.d/vendor_data.json",
	{"api-full", "oslo_reports", "file_event_handler"}:                           "/tmp/report",
	{"podified-" + novav1.IronicDriver + "-full", "ironic", "cafile"}:            "/etc/nova/nova.conf.d/tls-ca-bundle.pem",
	{"podified-" + novav1.IronicDriver + "-full", "placement", "cafile"}:         "/etc/nova/nova.conf.d/tls-ca-bundle.pem",
	{"podified-" + novav1.IronicDriver + "-full", "barbican", "verify_ssl_path"}: "/etc/nova/nova.conf.d/tls-ca-bundle.pem",
	{"podified-" + novav1.IronicDriver + "-bare", "placement", "cafile"}:         "None",
	{"service-full", "notifications", "notification_format"}:                     "unversioned",
	{"compute-full", "upgrade_levels", "compute"}:                                "auto",
	{"service-full", "upgrade_levels", "compute"}:                                "auto",
	{"compute-bare", "oslo_messaging_notifications", "driver"}:                   "['noop']",
	{"compute-bare", "vnc", "enabled"}:                                           "False",
	{"service-full", "keystone_authtoken", "service_token_roles_required"}:       "True",
	{"service-full", "keystone_authtoken", "service_token_roles"}:                "['service']",
	{"service-full", "keystone_authtoken", "service_type"}:                       "compute",
	{"service-full", "keystone_authtoken", "memcached_servers"}:                  "['m1:11211', 'm2:11211']",
	{"service-full", "cache", "memcache_servers"}:                                "['m1:11211', 'm2:11211']",
	{"service-full", "cache", "backend"}:                                         "oslo_cache.memcache_pool",
	{"service-bare", "keystone_authtoken", "memcached_servers"}:                  "None",
	{"service-bare", "cache", "backend"}:                                         "oslo_cache.dict",
	{"service-full", "barbican", "auth_endpoint"}:                                "https://k:5000",
	{"service-full", "oslo_messaging_rabbit", "rabbit_transient_quorum_queue"}:   "True",
	{"service-classic", "oslo_messaging_rabbit", "rabbit_quorum_queue"}:          "False",
	{"service-full", "oslo_messaging_notifications", "driver"}:                   "['messagingv2']",
	{"service-full", "api_database", "connection"}:                               "mysql+pymysql://u:p@db/nova_api?charset=utf8&ssl_ca=/etc/nova/nova.conf.d/tls-ca-bundle.pem",
	{"service-full", "keystone_authtoken", "cafile"}:                             "/etc/nova/nova.conf.d/tls-ca-bundle.pem",
	{"program-nova-novncproxy", "vnc", "novncproxy_host"}:                        "::",
	{"program-nova-novncproxy", "vnc", "auth_schemes"}:                           "['vencrypt', 'none']",
	{"program-nova-novncproxy", "vnc", "vencrypt_client_key"}:                    "/etc/nova/nova.conf.d/console.key",
	{"program-nova-novncproxy", "vnc", "vencrypt_ca_certs"}:                      "/etc/nova/nova.conf.d/console-ca.crt",
}

// programValues are those of releases that have the programs.
var programValues = map[[3]string]string{
	{"program-nova-api-os-compute", "DEFAULT", "osapi_compute_listen"}: "::",
	{"program-nova-api-os-compute", "wsgi", "ssl_key_file"}:            "/etc/nova/nova.conf.d/tls.key",
	{"program-nova-api-metadata", "DEFAULT", "metadata_listen"}:        "::",
	{"program-nova-api-metadata", "DEFAULT", "metadata_workers"}:       "1",
}

func TestNovaKnowsEveryGeneratedOption(t *testing.T) {
	switch {
	case testing.Short():
		t.Skip("the image of nova has to be loaded; -short skips that")
	case os.Geteuid() != 0:
		t.Fatal("the comparison needs root: it runs a container of the image of nova; -short skips it")
	}
	for image, release := range releases {
		t.Run(image, func(t *testing.T) { testRelease(t, image, release.hasPrograms) })
	}
}

func testRelease(t *testing.T, image string, hasPrograms bool) {
	root := envtest.File()
	all := generated(t, root, image)
	complete(t, root, all)
	if !hasPrograms {
		delete(all, "program-nova-api-os-compute")
		delete(all, "program-nova-api-metadata")
	}
	all["control"] = map[string]string{"1.conf": control}
	wanted := maps.Clone(values)
	if hasPrograms {
		maps.Copy(wanted, programValues)
	}
	got := compare(t, root, image, all, wanted)
	want := append(slices.Clone(found), fmt.Sprintf("%d options", count(t, all)))
	for option, value := range wanted {
		want = append(want, fmt.Sprintf("%s: [%s] %s = %s", option[0], option[1], option[2], value))
	}
	slices.Sort(want)
	slices.Sort(got)
	for i := range got { // a value that is not valid is explained in words of a library
		if i < len(want) && strings.HasPrefix(got[i], want[i]) {
			got[i] = want[i]
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what nova says of the generated options (-want +got):\n%s", diff)
	}
}

// generated are the files of all configurations, by process and name.
func generated(t *testing.T, root, image string) map[string]map[string]string {
	full := nova.Config{
		Owner: "Nova nova", QuorumQueues: true, TransportURL: "rabbit://u:p@bus:5671/cell1?ssl=1", ServicePassword: "p", KeystoneAuthURL: "https://k:5000", ServiceUser: "nova",
		Keystone:          novav1.KeystoneScope{Region: "r", UserDomainName: "d", ProjectDomainName: "d", CAFile: "/etc/ca.pem"},
		NoVNCProxyBaseURL: "https://console/vnc_lite.html", Connection: "mysql+pymysql://u:p@db/nova_cell1", APIConnection: "mysql+pymysql://u:p@db/nova_api?charset=utf8",
		MetadataSecret: "m", TLSDir: "/etc/nova/nova.conf.d", MemcachedServers: []string{"m1:11211", "m2:11211"}, NotificationsURL: "rabbit://n:p@bus/",
		ConsoleDir: "/etc/nova/nova.conf.d", Authorities: []byte("authorities"), DatabaseTLS: true,
	}
	bare := full
	bare.NoVNCProxyBaseURL, bare.APIConnection, bare.MetadataSecret, bare.TLSDir, bare.Keystone.CAFile, bare.MemcachedServers, bare.NotificationsURL, bare.Authorities, bare.DatabaseTLS = "", "", "", "", "", nil, "", nil, false
	all := map[string]map[string]string{}
	classic := bare
	classic.QuorumQueues = false
	hosts := hostFiles(t, root, image)
	for name, config := range map[string]nova.Config{"full": full, "bare": bare, "classic": classic} {
		compute, service := text(t)(config.Compute()), text(t)(config.Service())
		all["compute-"+name] = map[string]string{"01-nova-host.conf": hosts[name == "full"], "01-nova.conf": compute}
		all["service-"+name] = map[string]string{"01-nova.conf": service}
		for _, driver := range []string{novav1.IronicDriver, "fake.FakeDriver"} {
			all["podified-"+driver+"-"+name] = map[string]string{"01-nova.conf": compute + driverFile(t, root, driver, config)}
		}
	}
	for _, program := range []string{"nova-api-os-compute", "nova-api-metadata", "nova-novncproxy"} {
		all["program-"+program] = map[string]string{"program.conf": text(t)(full.Program(program))}
	}
	all["api-full"] = apiFiles(t, full)
	job, err := nova.MappingJob("j", "cell1", full)
	if err != nil {
		t.Fatal(err)
	}
	all["job"] = options(job.Config)
	return all
}

// options are those of the files of a service that have options.
func options(config map[string][]byte) map[string]string {
	files := map[string]string{}
	for name, content := range config {
		if strings.HasSuffix(name, ".conf") {
			files[name] = string(content)
		}
	}
	return files
}

// apiFiles are those of an API with each file that it reads next to its options.
func apiFiles(t *testing.T, config nova.Config) map[string]string {
	api := &nova.Component{Program: "nova-api-os-compute", Name: "nova-api", Port: nova.APIPort, Path: "/", Status: new(*podifiedv1.Status)}
	service, err := api.Assemble(podified.Snippets{}, config, nil)
	if err != nil {
		t.Fatal(err)
	}
	content.AddTo(service, map[string][]byte{furtherfiles.VendorData: []byte("{}"), furtherfiles.Paste: []byte("[composite:x]"), "policy.yaml": []byte("{}")})
	files := options(service.Config)
	if diff := cmp.Diff([]string{"01-nova-files.conf", "01-nova-report.conf", "01-nova.conf"}, slices.Sorted(maps.Keys(files))); diff != "" {
		t.Fatalf("the files with options of an API (-want +got):\n%s", diff)
	}
	return files
}

func text(t *testing.T) func(string, error) string {
	return func(text string, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
}

// driverFile is what NovaCompute adds.
func driverFile(t *testing.T, root, driver string, config nova.Config) string {
	source := text(t)(read(filepath.Join(root, driverTemplate)))
	parsed, err := template.New("").Funcs(template.FuncMap{"oslo": oslo.Quote}).Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, map[string]any{
		"Driver": driver, "Ironic": novav1.IronicDriver, "Keystone": config.Keystone,
		"HasAuthorities": len(config.Authorities) > 0, "Bundle": config.TLSDir + "/" + podified.AuthoritiesFile,
	}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// hostFiles are what the role writes from its template: with everything that a host can have,
// and with nothing of it.
func hostFiles(t *testing.T, root, image string) map[bool]string {
	settings := map[string]string{"log_file": "/var/log/containers/nova/nova-compute.log", "use_stderr": "true", "host": "compute-0.example.org", "my_ip": "192.0.2.1"}
	var defaults struct {
		Settings map[string]string `json:"edpm_nova_host_settings"`
		Dir      string            `json:"edpm_nova_container_config_dir"`
	}
	if err := yaml.Unmarshal([]byte(text(t)(read(filepath.Join(root, roleDir, "defaults/main.yml")))), &defaults); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(settings)), slices.Sorted(maps.Keys(defaults.Settings))); diff != "" {
		t.Fatalf("the role has other settings than this test has values for (-values +settings):\n%s", diff)
	}
	source := text(t)(read(filepath.Join(root, hostTemplate)))
	bare := map[string]any{
		"edpm_nova_host_settings": settings, "edpm_nova_container_config_dir": defaults.Dir, "edpm_nova_my_ip": settings["my_ip"], "edpm_nova_virt_type": "kvm",
		"edpm_nova_multipath": false, "edpm_config_files": map[string]string{}, "edpm_nova_providers": []string{}, "edpm_nova_providers_dir": "provider_config",
	}
	full := maps.Clone(bare)
	maps.Copy(full, map[string]any{
		"edpm_nova_virt_type": "qemu", "edpm_nova_multipath": true, "edpm_migration_address": "192.0.2.2", "edpm_migration_ssh_port": 2222,
		"edpm_config_files": map[string]string{furtherfiles.VendorData: "x"}, "edpm_nova_providers": []string{"provider.yaml"},
	})
	in, err := json.Marshal(map[string][]any{"full": {source, full}, "bare": {source, bare}})
	if err != nil {
		t.Fatal(err)
	}
	run(t, filepath.Join(root, "test/lab/images/load.sh"), image)
	var rendered struct{ Full, Bare string }
	if err := json.Unmarshal(inImage(t, root, image, bytes.NewBuffer(in), "python3", "-W", "ignore", "/compare/render.py"), &rendered); err != nil {
		t.Fatal(err)
	}
	return map[bool]string{true: rendered.Full, false: rendered.Bare}
}

func read(path string) (string, error) {
	content, err := os.ReadFile(path)
	return string(content), err
}

var assignment = regexp.MustCompile(`(?m)^(\w+) =`)

// complete fails where a template has an option that no configuration has: no one
// would look at it.
func complete(t *testing.T, root string, all map[string]map[string]string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, novaTemplates, "*.conf"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("the templates are %v (%v)", paths, err)
	}
	var generated strings.Builder
	for _, files := range all {
		for _, content := range files {
			generated.WriteString(content + "\n")
		}
	}
	for _, path := range append(paths, filepath.Join(root, driverTemplate), filepath.Join(root, programTemplate), filepath.Join(root, hostTemplate)) {
		for _, match := range assignment.FindAllStringSubmatch(text(t)(read(path)), -1) {
			if !strings.Contains(generated.String(), "\n"+match[1]+" =") {
				t.Errorf("%s has option %s, which none of the configurations of this test has", path, match[1])
			}
		}
	}
}

// count returns the options of all configurations.
func count(t *testing.T, all map[string]map[string]string) int {
	n := 0
	for process, files := range all {
		var parts []*oslo.Config
		for _, name := range slices.Sorted(maps.Keys(files)) {
			parsed, err := oslo.Parse(files[name])
			if err != nil {
				t.Fatalf("%s/%s: %v", process, name, err)
			}
			parts = append(parts, parsed)
		}
		for _, section := range oslo.Merge(parts...).Sections() {
			n += len(section.Options)
		}
	}
	return n
}

// compare returns what compare.py says of the configurations in the image of nova.
func compare(t *testing.T, root, image string, all map[string]map[string]string, shown map[[3]string]string) []string {
	t.Helper()
	dir := t.TempDir()
	command := []string{"--runtime", "runc", "run", "--rm", "--network", "none", "--user", "root", "--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096",
		"--volume", dir + ":/configurations:ro", "--volume", filepath.Join(root, "ansible/roles/edpm_service/files") + ":/check:ro", "--volume", filepath.Join(root, "test/e2e/options/testdata") + ":/compare:ro",
		"--env", "PYTHONPATH=/check", "--env", "PYTHONDONTWRITEBYTECODE=1", "localhost/edpm-" + image + ":latest", "python3", "-W", "ignore", "/compare/compare.py"}
	for option := range shown {
		command = append(command, "--show", option[0], option[1], option[2])
	}
	for _, process := range slices.Sorted(maps.Keys(all)) {
		for name, content := range all[process] {
			path := filepath.Join(dir, process, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		command = append(command, "/configurations/"+process)
	}
	run(t, filepath.Join(root, "test/lab/images/load.sh"), image)
	return strings.Split(strings.TrimSpace(run(t, "podman", command...)), "\n")
}

// run returns what a program prints.
func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	var errOut bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stderr, cmd.WaitDelay = &errOut, 5*time.Second
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", program, strings.Join(args, " "), err, out, errOut.String())
	}
	return string(out)
}
