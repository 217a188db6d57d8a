package validate

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
)

// What a run itself puts into its Pod (controllers/ansibleee and the image). A
// mount over one of the paths, or over a directory above it, would hide the key,
// the inventory or the results of the run; nothing belongs into the directories.
var (
	runDirectories = []string{"/runner/ssh", "/runner/jump", "/runner/.jump", "/runner/config", "/runner/artifacts"}
	runPaths       = append([]string{
		"/runner/inventory/hosts.yaml", "/runner/inventory/inventory.yaml", "/runner/.known_hosts", "/dev/termination-log", "/tmp",
	}, runDirectories...)
	runVolumes = []string{"runner", "tmp", "ssh-key", "jump-key", "inputs"}
)

// ExtraMounts checks the volumes and mounts that a spec adds to runner Pods:
// a Pod with a wrong one would be refused, or run with its inputs hidden.
func ExtraMounts(at *field.Path, groups []ansibleeev1.ExtraMount) field.ErrorList {
	var errs field.ErrorList
	volumes, paths := map[string]bool{}, map[string]bool{}
	for i, group := range groups {
		errs = append(errs, volumeNames(at.Index(i).Child("volumes"), group.Volumes, volumes)...)
		for j, mount := range group.Mounts {
			errs = append(errs, oneMount(at.Index(i).Child("mounts").Index(j), mount, group.Volumes, paths)...)
		}
	}
	return errs
}

// volumeNames checks the names of a group against those seen before: the
// volumes of all groups end up in one Pod.
func volumeNames(at *field.Path, volumes []ansibleeev1.ExtraVolume, seen map[string]bool) field.ErrorList {
	var errs field.ErrorList
	for i, v := range volumes {
		name := at.Index(i).Child("name")
		errs = append(errs, Label(name, v.Name)...)
		errs = append(errs, once(name, v.Name, seen, "is the name of a volume above: give each volume of the Pod its own name")...)
		if slices.Contains(runVolumes, v.Name) {
			errs = append(errs, field.Invalid(name, v.Name, "is the name of a volume that the run adds itself: choose another"))
		}
		errs = append(errs, volumeSource(at.Index(i), v)...)
	}
	return errs
}

func volumeSource(at *field.Path, v ansibleeev1.ExtraVolume) field.ErrorList {
	var errs field.ErrorList
	if v.Secret != nil {
		errs = append(errs, ObjectName(at.Child("secret", "secretName"), v.Secret.SecretName)...)
	}
	if v.ConfigMap != nil {
		errs = append(errs, ObjectName(at.Child("configMap", "name"), v.ConfigMap.Name)...)
	}
	if v.PersistentVolumeClaim != nil {
		errs = append(errs, ObjectName(at.Child("persistentVolumeClaim", "claimName"), v.PersistentVolumeClaim.ClaimName)...)
	}
	if v.Projected != nil {
		for i, source := range v.Projected.Sources {
			errs = append(errs, projection(at.Child("projected", "sources").Index(i), source)...)
		}
	}
	return errs
}

func projection(at *field.Path, source ansibleeev1.ExtraProjectionSource) field.ErrorList {
	set := 0
	var errs field.ErrorList
	if source.Secret != nil {
		set++
		errs = append(errs, RequiredName(at.Child("secret", "name"), source.Secret.Name)...)
	}
	if source.ConfigMap != nil {
		set++
		errs = append(errs, RequiredName(at.Child("configMap", "name"), source.ConfigMap.Name)...)
	}
	if source.DownwardAPI != nil {
		set++
	}
	if set != 1 {
		errs = append(errs, field.Invalid(at, set, "must be exactly one of secret, configMap and downwardAPI: a runner gets no token and no certificate"))
	}
	return errs
}

func oneMount(at *field.Path, mount corev1.VolumeMount, volumes []ansibleeev1.ExtraVolume, seen map[string]bool) field.ErrorList {
	target := at.Child("mountPath")
	if mount.MountPath == "" {
		return field.ErrorList{field.Required(target, "set it to the directory or file in the runner Pod, for example /etc/ceph")}
	}
	errs := check(target, mount.MountPath, mountPath)
	errs = append(errs, free(target, mount.MountPath)...)
	errs = append(errs, once(target, mount.MountPath, seen, "is mounted above: give each mount its own path")...)
	errs = append(errs, check(at.Child("subPath"), mount.SubPath, subPath)...)
	if !slices.ContainsFunc(volumes, func(v ansibleeev1.ExtraVolume) bool { return v.Name == mount.Name }) {
		errs = append(errs, field.Invalid(at.Child("name"), mount.Name, "is not among the volumes of the same entry of extraMounts: add it there, or correct the name"))
	}
	return errs
}

func once(at *field.Path, value string, seen map[string]bool, problem string) field.ErrorList {
	if !seen[value] {
		seen[value] = true
		return nil
	}
	return field.ErrorList{field.Invalid(at, value, problem)}
}

// free checks that a mount hides nothing that the run needs.
func free(at *field.Path, target string) field.ErrorList {
	hidden := slices.IndexFunc(runPaths, func(p string) bool { return inside(p, target) })
	entered := slices.IndexFunc(runDirectories, func(dir string) bool { return inside(target, dir) })
	var taken string
	switch {
	case hidden >= 0:
		taken = runPaths[hidden]
	case entered >= 0:
		taken = runDirectories[entered]
	default:
		return nil
	}
	return field.ErrorList{field.Invalid(at, target, fmt.Sprintf("would hide or change %s, which the run uses itself: mount elsewhere, for example under /etc", taken))}
}

// inside reports whether p is dir or lies below it.
func inside(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// absolutePath excludes ":" because the kubelet refuses it.
func absolutePath(p string) bool {
	return path.IsAbs(p) && path.Clean(p) == p && printable(p) && !strings.Contains(p, ":")
}

// relativePath excludes a leading "-", which would be taken for an option.
func relativePath(p string) bool {
	return filepath.IsLocal(p) && path.Clean(p) == p && p != "." && printable(p) && p[0] != '-'
}

func printable(p string) bool {
	return !strings.ContainsFunc(p, func(r rune) bool { return !unicode.IsPrint(r) })
}
