// Package tier divides the stories: those that gate every change, and the long ones
// that are run before a release and when their subject changes.
package tier

import (
	"os"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
)

// Long marks stories that make e2e leaves out and make e2e-all runs.
var Long = ginkgo.Label(long)

const long = "long"

// All reports whether the long stories are run as well: with E2E_LONG=1.
func All() bool { return os.Getenv("E2E_LONG") == "1" }

// Config is the configuration of a suite, for RunSpecs. A label filter or focus of a person
// decides alone.
func Config() (types.SuiteConfig, types.ReporterConfig) {
	suite, reporter := ginkgo.GinkgoConfiguration()
	if !All() && suite.LabelFilter == "" && len(suite.FocusStrings)+len(suite.FocusFiles) == 0 {
		suite.LabelFilter = "!" + long
	}
	return suite, reporter
}
