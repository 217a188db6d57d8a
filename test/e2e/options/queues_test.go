package options

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/edpm-operators/edpm-operators/internal/nova"
	"github.com/edpm-operators/edpm-operators/test/envtest"
)

func TestAURLHasTheQueuesOfItsMessageBus(t *testing.T) {
	switch {
	case testing.Short():
		t.Skip("the image of nova has to be loaded; -short skips that")
	case os.Geteuid() != 0:
		t.Fatal("the test needs root: it runs a container of the image of nova; -short skips it")
	}
	for image := range releases {
		for own, quorum := range map[string]bool{"classic": true, "quorum": false} {
			t.Run(image+" reaches another type from "+own, func(t *testing.T) { testQueues(t, image, own, quorum) })
		}
	}
}

func testQueues(t *testing.T, image, own string, quorum bool) {
	root := envtest.File()
	run(t, filepath.Join(root, "test/lab/images/load.sh"), image)
	command := []string{"python3", "-W", "ignore", "/compare/queues.py", own}
	var want []string
	for url, ssl := range map[string]string{"rabbit://u:p@h:5671/cell1?ssl=1": "True", "rabbit://u:p@h,u:p@i/cell1": "False"} {
		word := map[bool]string{true: "True", false: "False"}[quorum]
		line := fmt.Sprintf("amqp_durable_queues=%s rabbit_quorum_queue=%s rabbit_transient_quorum_queue=%s ssl=%s", word, word, word, ssl)
		command, want = append(command, nova.WithQueues(url, quorum)), append(want, line, line)
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(string(inImage(t, root, image, nil, command...))), "\n")); diff != "" {
		t.Errorf("the options by which oslo.messaging connects (-want +got):\n%s", diff)
	}
}
