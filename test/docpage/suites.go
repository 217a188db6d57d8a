package docpage

import (
	"path/filepath"
	"slices"
	"strings"
)

// Suites are the pages whose commands are run, in the order in which they are, by the
// directory of the suite that runs them.
var Suites = map[string][]string{
	// With hosts. The pages continue from each other: the first brings the lab up and
	// two computes into it, the last removes the operators. Those that make hosts run
	// again and do not wait for it come late.
	"test/e2e/docs": {
		"docs/quickstart.md",
		"docs/lab.md",
		"docs/how-to/add-a-compute.md",
		"docs/how-to/change-configuration.md",
		"docs/how-to/custom-service-config.md",
		"docs/how-to/add-an-edpm-service.md",
		"docs/how-to/replace-a-host.md",
		"docs/how-to/scale-in.md",
		"docs/conditions.md",
		"docs/troubleshooting.md",
		"docs/novacell.md",
		"docs/novaexternalcompute.md",
		"docs/openstackdataplane.md",
		"docs/openstackansibleee.md",
		"docs/metrics.md",
		"docs/coexistence.md",
		"docs/runbooks/EDPMComputeServiceDown.md",
		"docs/runbooks/EDPMDeletionWedged.md",
		"docs/runbooks/EDPMGuestsStuck.md",
		"docs/runbooks/EDPMHostsFailing.md",
		"docs/runbooks/EDPMManagerDown.md",
		"docs/runbooks/EDPMPlacementInfeasible.md",
		"docs/runbooks/EDPMRunStuck.md",
		"docs/runbooks/EDPMWebhookDown.md",
		"docs/kubectl-edpm.md",
		"docs/operations.md",
		"docs/install.md",
	},
	// With pretend nodes and an image service.
	"test/e2e/topology": {
		"docs/how-to/spread-and-pin.md",
		"docs/topology.md",
		"docs/pod-pending.md",
		"docs/glance.md",
		"docs/storagecluster.md",
	},
	// With machines, of which one cannot be provisioned.
	"test/e2e/metal": {
		"docs/runbooks/EDPMProvisioningStuck.md",
	},
	"test/e2e/walkthrough": {
		"docs/walkthrough.md",
	},
}

// examples are the pages whose commands are about the objects that they show as YAML.
var examples = []string{"docs/novacell.md", "docs/openstackansibleee.md", "docs/how-to/spread-and-pin.md", "docs/topology.md", "docs/storagecluster.md"}

// Commands returns what of a page of Suites is to be run, in its order: the blocks
// marked sh and, where they are about them, commands that apply the YAML of the page.
// Root is that of the repository. The error is that of reading the page.
func Commands(root, page string) ([]Block, error) {
	all, err := Read(filepath.Join(root, page))
	var run []Block
	for _, b := range all {
		switch {
		case b.Runs():
			run = append(run, b)
		case b.Info == "yaml" && strings.Contains("\n"+b.Text, "\napiVersion: ") && slices.Contains(examples, page):
			b.Line, b.Text = b.Line-1, "kubectl apply -f - <<'END'\n"+b.Text+"END\n"
			run = append(run, b)
		}
	}
	return run, err
}
