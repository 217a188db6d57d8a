package podified_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/test/envtest"
	"github.com/edpm-operators/edpm-operators/test/story"
)

const (
	// soon is for what takes a few reconciliations, on a busy machine.
	soon = 3 * time.Minute
	// gather is how long the manager gathers changes.
	gather = 500 * time.Millisecond
	// still is for what must not happen: longer than changes are gathered, on a busy
	// machine.
	still = gather + time.Second
)

var (
	env     *envtest.Env
	api     client.Client
	cluster *kubernetes
	ctx     = context.Background()
)

func TestPodified(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(soon)
	SetDefaultEventuallyPollingInterval(200 * time.Millisecond)
	SetDefaultConsistentlyDuration(still)
	SetDefaultConsistentlyPollingInterval(100 * time.Millisecond)
	RunSpecs(t, "Podified services")
}

var _ = BeforeSuite(func() {
	env = envtest.Start(GinkgoT(), envtest.Options{Webhooks: true})
	api = story.Connect(env)
	cluster = startKubernetes()
	startManager()
})
