package placement

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"
)

// notes name what the pods of the workload depend on and the prediction leaves out.
func (s *simulation) notes() []string {
	var notes []string
	spec := s.workload.Template.Spec
	add := func(depends bool, note string) {
		if depends {
			notes = append(notes, note)
		}
	}
	add(spec.PriorityClassName != "", "eviction of pods of lower priority (priorityClassName "+spec.PriorityClassName+")")
	add(len(spec.ResourceClaims) > 0, "the devices of resourceClaims")
	add(spec.SchedulerName != "" && spec.SchedulerName != corev1.DefaultSchedulerName, "the rules of scheduler "+spec.SchedulerName)
	for i := range s.workload.ClaimTemplates {
		if class := s.storage.classOf(s.workload.ClaimTemplates[i].DeepCopy()); class != nil {
			immediate := ptr.Deref(class.VolumeBindingMode, storagev1.VolumeBindingImmediate) == storagev1.VolumeBindingImmediate
			add(immediate && class.Provisioner != noProvisioner, "where StorageClass "+class.Name+" makes new volumes, which binds them at once")
			add(!immediate && s.tracksCapacity(class), "that several new volumes of StorageClass "+class.Name+" share the room of a CSIStorageCapacity")
		}
	}
	return notes
}

func (s *simulation) tracksCapacity(class *storagev1.StorageClass) bool {
	for _, driver := range s.snapshot.CSIDrivers {
		if driver.Name == class.Provisioner {
			return ptr.Deref(driver.Spec.StorageCapacity, false)
		}
	}
	return false
}

// noted adds the notes to problems.
func noted(problems []Problem, notes []string) []Problem {
	if len(notes) > 0 {
		for i := range problems {
			problems[i].Message = strings.TrimRight(problems[i].Message, ". ") + ". The prediction leaves out " + strings.Join(notes, ", ")
		}
	}
	return problems
}
