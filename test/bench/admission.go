package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/catalogue"
	novaoptions "github.com/edpm-operators/edpm-operators/internal/nova/options"
)

// Each write is sent so many times, one after the other; the first ones fill caches.
const (
	admissionWrites = 500
	admissionWarmUp = 50
)

// admission are the times of one write, in ascending order, while the webhooks
// are called and when there are none.
type admission struct {
	what                 string
	webhooks, noWebhooks []time.Duration
}

// added is the difference at a percentile from 0 to 99.
func (a admission) added(percentile int) time.Duration {
	at := func(times []time.Duration) time.Duration { return times[len(times)*percentile/100] }
	return at(a.webhooks) - at(a.noWebhooks)
}

func (a admission) String() string {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	return fmt.Sprintf("%.1f / %.1f ms", ms(a.added(50)), ms(a.added(99)))
}

// admissions are the writes that are measured. They are dry runs: admission is
// the same, and nothing is stored.
func (s *stand) admissions(ctx context.Context, roles int) map[string]func(i int) error {
	tags := func(i int) client.Patch {
		return client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"nodeTemplate":{"ansibleVars":{"edpm_ntp_servers":["10.0.0.%d"]}}}}`, i%250))
	}
	return map[string]func(int) error{
		"a node created": func(i int) error {
			return s.client.Create(ctx, newNode(1<<19+i, roles), client.DryRunAll)
		},
		"`ansibleVars` of a role": func(i int) error {
			return s.client.Patch(ctx, &dataplanev1.OpenStackDataPlaneRole{ObjectMeta: meta(roleName(0))}, tags(i), client.DryRunAll)
		},
		"`customServiceConfig` of a compute": func(i int) error {
			return s.configure(ctx, "", fmt.Sprintf("[DEFAULT]\ndebug = True\n[libvirt]\ncpu_models = Haswell%d\n", i))
		},
		"`customServiceConfig` of a compute, judged by the options of its image": func(i int) error {
			return s.configure(ctx, optionsImage, fmt.Sprintf("[DEFAULT]\ndebug = True\n[section_7]\noption_7 = %d\n[section_8]\nopiton_8 = 1\n", i))
		},
	}
}

// configure writes the text of a compute, with its image unless it is empty.
func (s *stand) configure(ctx context.Context, image, config string) error {
	spec := map[string]string{"customServiceConfig": config}
	if image != "" {
		spec["novaComputeContainerImage"] = image
	}
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return err
	}
	return s.client.Patch(ctx, &novav1.NovaExternalCompute{ObjectMeta: meta(nodeName(0))}, client.RawPatch(types.MergePatchType, patch), client.DryRunAll)
}

// optionsImage is an image whose options are known.
const optionsImage = "bench.example/nova-compute:options"

// newOptions has as many options as images of nova 2026.1 have, about.
func newOptions() *catalogue.Catalogue {
	c := &catalogue.Catalogue{Options: map[string]map[string]*catalogue.Option{"DEFAULT": {"debug": {Type: "boolean value"}}}}
	for section := range 60 {
		options := map[string]*catalogue.Option{}
		for option := range 20 {
			options[fmt.Sprint("option_", option)] = &catalogue.Option{Type: "integer value"}
		}
		c.Options[fmt.Sprint("section_", section)] = options
	}
	return c
}

// storeOptions stores the options of optionsImage, and waits until admission judges by them.
func (s *stand) storeOptions(ctx context.Context) error {
	data, err := newOptions().Encode()
	if err != nil {
		return err
	}
	if err := s.client.Create(ctx, novaoptions.ConfigMap(namespace, optionsImage, data)); err != nil {
		return fmt.Errorf("storing the options of an image: %w", err)
	}
	return until(ctx, 50*time.Millisecond, func() (bool, error) {
		err := s.configure(ctx, optionsImage, "[DEFAULT]\ndebug = maybe\n")
		if apierrors.IsInvalid(err) {
			return true, nil
		}
		return false, err
	})
}

// admit times each of the writes, now: one of each kind after the other, so that what slows the machine
// slows all of them.
func (s *stand) admit(ctx context.Context, roles int) (map[string][]time.Duration, error) {
	log.Printf("Admission: %d writes of each kind", admissionWrites)
	out, writes := map[string][]time.Duration{}, s.admissions(ctx, roles)
	for i := range admissionWrites {
		for what, write := range writes {
			start := time.Now()
			if err := write(i); err != nil {
				return nil, fmt.Errorf("%s: %w", what, err)
			}
			out[what] = append(out[what], time.Since(start))
		}
	}
	for what, times := range out {
		out[what] = times[admissionWarmUp:]
		slices.Sort(out[what])
	}
	return out, nil
}

// compare pairs the times of each write, in the order of their names.
func compare(webhooks, noWebhooks map[string][]time.Duration) []admission {
	var out []admission
	for what, times := range webhooks {
		out = append(out, admission{what, times, noWebhooks[what]})
	}
	slices.SortFunc(out, func(a, b admission) int { return cmp.Compare(a.what, b.what) })
	return out
}
