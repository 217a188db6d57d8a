package validate

import (
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/edpm-operators/edpm-operators/apis/common"
)

// What is done with the guests of a host that is drained.
const (
	// DrainLive moves guests while they run. Those that are shut off are moved as they are.
	DrainLive = "live"
	// DrainCold shuts guests down, moves them, and starts them again.
	DrainCold = "cold"
	// DrainStop shuts guests down, and leaves them where they are.
	DrainStop = "stop"
)

const (
	// DefaultDrainParallel is how many guests of a host are moved at a time.
	DefaultDrainParallel = 2
	// mostDrainParallel is more than any host moves at a time: nova queues them.
	mostDrainParallel = 50
)

// Drain checks the annotations of a node with which it is drained, and returns what they
// say: the mode, empty for none, and how many guests are moved at a time.
func Drain(annotations map[string]string) (mode string, parallel int, errs field.ErrorList) {
	path := field.NewPath("metadata", "annotations")
	mode, present := annotations[common.DrainAnnotation]
	if modes := []string{DrainLive, DrainCold, DrainStop}; present && mode != DrainLive && mode != DrainCold && mode != DrainStop {
		errs = append(errs, field.NotSupported(path.Key(common.DrainAnnotation), mode, modes))
	}
	parallel = DefaultDrainParallel
	if text, present := annotations[common.DrainParallelAnnotation]; present {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > mostDrainParallel {
			errs = append(errs, field.Invalid(path.Key(common.DrainParallelAnnotation), text,
				"must be a number from 1 to "+strconv.Itoa(mostDrainParallel)+": how many guests are moved at a time; remove it for "+strconv.Itoa(DefaultDrainParallel)))
		} else {
			parallel = n
		}
	}
	return mode, parallel, errs
}
