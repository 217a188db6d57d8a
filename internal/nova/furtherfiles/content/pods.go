package content

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/edpm-operators/edpm-operators/internal/nova/furtherfiles"
	"github.com/edpm-operators/edpm-operators/internal/podified"
)

const (
	// optionsFile has the options without which files are not read. Its name comes before
	// that of the generated configuration.
	optionsFile = "01-nova-files.conf"
	// providersDir is where nova looks for definitions of providers: it reads all files there.
	providersDir    = "/etc/nova/provider_config"
	providersVolume = "provider-config"
	// configDirVariable is where the WSGI applications of nova look for api-paste.ini.
	configDirVariable = "OS_NOVA_CONFIG_DIR"
)

// AddTo adds the files to a service in pods, which has everything else. Without any nothing is
// added. policy.yaml and api-paste.ini are looked for in the directory of the configuration
// (oslo_config/cfg.py, find_file).
func AddTo(s *podified.Service, files map[string][]byte) {
	maps.Copy(s.Config, files)
	if _, found := files[furtherfiles.VendorData]; found {
		s.Config[optionsFile] = []byte("[api]\nvendordata_jsonfile_path = " + s.ConfigDir + "/" + furtherfiles.VendorData + "\n")
	}
	container := &s.Pod.Containers[0]
	if _, found := files[furtherfiles.Paste]; found {
		container.Env = append(container.Env, corev1.EnvVar{Name: configDirVariable, Value: s.ConfigDir})
	}
	names := furtherfiles.Providers(files)
	if len(names) == 0 {
		return
	}
	source := &corev1.SecretVolumeSource{SecretName: s.ConfigName(), DefaultMode: podified.ConfigMode()}
	for _, name := range names {
		source.Items = append(source.Items, corev1.KeyToPath{Key: name, Path: name})
	}
	s.Pod.Volumes = append(s.Pod.Volumes, corev1.Volume{Name: providersVolume, VolumeSource: corev1.VolumeSource{Secret: source}})
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: providersVolume, MountPath: providersDir, ReadOnly: true})
}
