// Package controllers wires the controllers of edpm-operators.
package controllers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/controllers/ansibleee/openstackansibleee"
	"github.com/edpm-operators/edpm-operators/controllers/ansibleee/upgradeable"
	"github.com/edpm-operators/edpm-operators/controllers/core/openstackcontrolplane"
	"github.com/edpm-operators/edpm-operators/controllers/dataplane/baremetalclaim"
	"github.com/edpm-operators/edpm-operators/controllers/dataplane/openstackdataplane"
	"github.com/edpm-operators/edpm-operators/controllers/dataplane/openstackdataplanenode"
	"github.com/edpm-operators/edpm-operators/controllers/dataplane/openstackdataplanerole"
	"github.com/edpm-operators/edpm-operators/controllers/edpm/edpmservice"
	"github.com/edpm-operators/edpm-operators/controllers/edpm/edpmserviceclass"
	"github.com/edpm-operators/edpm-operators/controllers/glance/glance"
	"github.com/edpm-operators/edpm-operators/controllers/glance/glanceapi"
	"github.com/edpm-operators/edpm-operators/controllers/neutron/ovncontroller"
	"github.com/edpm-operators/edpm-operators/controllers/neutron/ovnmetadataagent"
	"github.com/edpm-operators/edpm-operators/controllers/nova/nova"
	"github.com/edpm-operators/edpm-operators/controllers/nova/novacell"
	"github.com/edpm-operators/edpm-operators/controllers/nova/novacompute"
	"github.com/edpm-operators/edpm-operators/controllers/nova/novaexternalcompute"
	"github.com/edpm-operators/edpm-operators/controllers/ocs/storagecluster"
	"github.com/edpm-operators/edpm-operators/controllers/topology/topology"
	"github.com/edpm-operators/edpm-operators/internal/dataplane"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/hosted"
	"github.com/edpm-operators/edpm-operators/internal/images"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/kinds"
	"github.com/edpm-operators/edpm-operators/internal/metrics"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeservice"
	"github.com/edpm-operators/edpm-operators/internal/nova/options"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/placement"
	"github.com/edpm-operators/edpm-operators/internal/podified"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// Operators that run unless others are chosen.
var Operators = []string{"ansibleee", "core", "dataplane", "edpm", "glance", "neutron", "nova", "topology"}

// OptionalOperators only run when they are chosen by name: ocs has the kind
// StorageCluster, which a cluster with ocs-operator has already.
var OptionalOperators = []string{"ocs"}

// Options of edpm-operators.
type Options struct {
	// Operators to run; empty means all that are not optional.
	Operators []string
	Engine    edpm.Options
	// Gather is how long changes of many objects are gathered into one reconciliation of
	// what summarizes them; zero means watch.DefaultGather.
	Gather time.Duration
	// Secrets are the limits of each namespace; zero means inputs.DefaultLimits.
	Secrets inputs.Limits
	Images  images.Defaults
	// Services says how often nova is asked for the services of computes; zero means
	// computeservice.DefaultOptions.
	Services computeservice.Options
	// RunnerResources of the Pod of a run with 50 hosts.
	RunnerResources corev1.ResourceRequirements
	// OperatorCondition of the manager, by which OLM is told when not to upgrade it;
	// without a name there is none.
	OperatorCondition types.NamespacedName
	// Logs of pods, in which Jobs print the options of images; nil if these are not read.
	Logs options.Logs
}

// setup has what the controllers share.
type setup struct {
	manager.Manager
	Options
	inputs    *inputs.Reader
	engine    *edpm.Engine
	predictor *placement.Predictor
}

// Setup adds the controllers of the chosen operators to the manager.
func Setup(ctx context.Context, mgr ctrl.Manager, opts Options) error {
	opts.Gather = cmp.Or(opts.Gather, watch.DefaultGather)
	reader, err := inputs.NewReader(ctx, mgr, opts.Secrets)
	if err != nil {
		return err
	}
	s := &setup{
		Manager: mgr, Options: opts, inputs: reader, predictor: placement.NewPredictor(mgr.GetCache(), opts.Gather),
		engine: edpm.New(mgr.GetClient(), mgr.GetAPIReader(), opts.Engine),
	}
	steps := []func(context.Context) error{s.shared}
	var all []phase.Object
	for _, operator := range known() {
		if s.runs(operator) {
			objects, err := counted(mgr.GetScheme(), operator)
			if err != nil {
				return err
			}
			all = append(all, objects...)
			steps = append(steps, map[string]func(context.Context) error{
				"ansibleee": s.ansibleEE, "core": s.core, "dataplane": s.dataPlane, "edpm": s.edpm, "glance": s.glance, "neutron": s.neutron, "nova": s.nova,
				"ocs": s.ocs, "topology": s.topology,
			}[operator])
		}
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return metrics.SetupWithManager(mgr, all...)
}

// counted returns the kinds of an operator of which metrics count the objects: those
// with conditions.
func counted(scheme *runtime.Scheme, operator string) ([]phase.Object, error) {
	var objects []phase.Object
	for _, kind := range kinds.Of(operator) {
		obj, err := scheme.New(kind.GroupVersionKind)
		if err != nil {
			return nil, err
		}
		if o, ok := obj.(phase.Object); ok {
			objects = append(objects, o)
		}
	}
	return objects, nil
}

func (s *setup) runs(operator string) bool {
	if len(s.Operators) == 0 {
		return slices.Contains(Operators, operator)
	}
	return slices.Contains(s.Operators, operator)
}

// known are all operators.
func known() []string { return slices.Concat(Operators, OptionalOperators) }

// CheckOperators returns an error that names the first operator that does not exist.
func CheckOperators(names []string) error {
	for _, n := range names {
		if !slices.Contains(known(), n) {
			return fmt.Errorf("--operators: %q is not an operator: choose from %s", n, strings.Join(known(), ", "))
		}
	}
	return nil
}

// GetClient returns a client that reads ConfigMaps by name: the manager's own has
// the metadata of all, and the content of none.
func (s *setup) GetClient() client.Client { return s.inputs.Client(s.Manager.GetClient()) }

// runner reports for one controller.
func (s *setup) runner(name string) *phase.Runner {
	return &phase.Runner{Client: s.GetClient(), Events: s.GetEventRecorder(name)}
}

// hosted is what services on hosts share.
func (s *setup) hosted() hosted.Shared {
	return hosted.Shared{Client: s.GetClient(), Live: s.GetAPIReader(), Inputs: s.inputs, Engine: s.engine}
}

// shared is what more than one operator needs.
func (s *setup) shared(ctx context.Context) error {
	if s.runs("glance") || s.runs("nova") {
		if err := podified.IndexPods(ctx, s.GetFieldIndexer()); err != nil {
			return err
		}
	}
	if !s.runs("dataplane") && !s.runs("edpm") && !s.runs("neutron") && !s.runs("nova") {
		return nil
	}
	if err := dataplane.Index(ctx, s.GetFieldIndexer()); err != nil {
		return err
	}
	counts, err := dataplane.Count(ctx, s.GetCache())
	if err != nil {
		return err
	}
	s.engine.Members = counts.Of
	return s.engine.SetupWithManager(ctx, s.Manager)
}

func (s *setup) ansibleEE(ctx context.Context) error {
	if s.OperatorCondition.Name != "" {
		if err := (&upgradeable.Reconciler{Client: s.GetClient(), Live: s.GetAPIReader(), Condition: s.OperatorCondition}).SetupWithManager(s.Manager); err != nil {
			return err
		}
	}
	return (&openstackansibleee.Reconciler{
		Client: s.GetClient(), Live: s.GetAPIReader(), Runner: s.runner("ansibleee"), Inputs: s.inputs, DefaultImage: s.Images.AnsibleEE,
		Resources: s.RunnerResources,
	}).SetupWithManager(ctx, s.Manager)
}

func (s *setup) dataPlane(ctx context.Context) error {
	if err := (&openstackdataplane.Reconciler{Client: s.GetClient(), Runner: s.runner("dataplane"), Gather: s.Gather}).SetupWithManager(ctx, s.Manager); err != nil {
		return err
	}
	if err := (&openstackdataplanerole.Reconciler{Client: s.GetClient(), Runner: s.runner("dataplane-role"), Gather: s.Gather}).SetupWithManager(s.Manager); err != nil {
		return err
	}
	if err := (&baremetalclaim.Reconciler{
		Client: s.GetClient(), Live: s.GetAPIReader(), Inputs: s.inputs, Clock: s.engine.Clock, Events: s.GetEventRecorder("baremetalclaim"),
	}).SetupWithManager(ctx, s.Manager); err != nil {
		return err
	}
	return (&openstackdataplanenode.Reconciler{
		Client: s.GetClient(), Live: s.GetAPIReader(), Runner: s.runner("dataplane-node"), Inputs: s.inputs, Engine: s.engine, RunnerImage: s.Images.AnsibleEE,
	}).SetupWithManager(ctx, s.Manager)
}

func (s *setup) neutron(ctx context.Context) error {
	if err := (&ovncontroller.Reconciler{Images: s.Images}).SetupWithManager(ctx, s.Manager, s.hosted()); err != nil {
		return err
	}
	return (&ovnmetadataagent.Reconciler{Images: s.Images}).SetupWithManager(ctx, s.Manager, s.hosted())
}

func (s *setup) edpm(ctx context.Context) error {
	if err := (&edpmservice.Reconciler{Images: s.Images}).SetupWithManager(ctx, s.Manager, s.hosted()); err != nil {
		return err
	}
	return (&edpmserviceclass.Reconciler{
		Client: s.GetClient(), Live: s.GetAPIReader(), Runner: s.runner("edpmserviceclass"), Gather: s.Gather, Inputs: s.inputs,
	}).SetupWithManager(s.Manager)
}

func (s *setup) nova(ctx context.Context) error {
	services := computeservice.New(ctx, s.Services)
	novaPods := podified.New(s.Manager, s.inputs, s.predictor, podified.Names{Controller: "nova", Service: "nova", Finalizer: novav1.NovaFinalizer})
	cellPods := podified.New(s.Manager, s.inputs, s.predictor, podified.Names{Controller: "novacell", Service: "nova-conductor", Finalizer: novav1.NovaCellFinalizer})
	var finder *options.Finder
	var ofNova, ofCells *options.Keeper
	if s.Logs != nil {
		if err := options.Index(ctx, s.GetFieldIndexer()); err != nil {
			return err
		}
		finder = options.NewFinder(s.inputs)
		ofNova = &options.Keeper{Pods: novaPods, Metadata: s.GetCache(), Logs: s.Logs}
		ofCells = &options.Keeper{Pods: cellPods, Metadata: s.GetCache(), Logs: s.Logs}
	}
	if err := (&nova.Reconciler{
		Client: s.GetClient(), Runner: s.runner("nova"), Inputs: s.inputs, Images: s.Images, Services: services, Pods: novaPods, Options: ofNova, Known: finder,
	}).SetupWithManager(ctx, s.Manager); err != nil {
		return err
	}
	if err := (&novacell.Reconciler{
		Client: s.GetClient(), Runner: s.runner("novacell"), Inputs: s.inputs, Images: s.Images, Gather: s.Gather, Pods: cellPods, Options: ofCells, Known: finder,
	}).SetupWithManager(ctx, s.Manager); err != nil {
		return err
	}
	if err := (&novacompute.Reconciler{
		Client: s.GetClient(), Runner: s.runner("novacompute"), Inputs: s.inputs, Images: s.Images, Services: services, Options: finder,
		Pods: podified.New(s.Manager, s.inputs, s.predictor, podified.Names{Controller: "novacompute", Service: "nova-compute", Finalizer: novav1.NovaComputeFinalizer}),
	}).SetupWithManager(ctx, s.Manager); err != nil {
		return err
	}
	return (&novaexternalcompute.Reconciler{Images: s.Images, Services: services, Options: finder}).SetupWithManager(ctx, s.Manager, s.hosted())
}

func (s *setup) glance(ctx context.Context) error {
	if err := (&glance.Reconciler{Client: s.GetClient(), Runner: s.runner("glance"), Gather: s.Gather, Images: s.Images}).SetupWithManager(ctx, s.Manager); err != nil {
		return err
	}
	return (&glanceapi.Reconciler{
		Client: s.GetClient(), Runner: s.runner("glanceapi"), Inputs: s.inputs, Images: s.Images,
		Pods: podified.New(s.Manager, s.inputs, s.predictor, podified.Names{Controller: "glanceapi", Service: "glance", Finalizer: glancev1.GlanceAPIFinalizer}),
	}).SetupWithManager(ctx, s.Manager)
}

func (s *setup) core(ctx context.Context) error {
	return (&openstackcontrolplane.Reconciler{Client: s.GetClient(), Runner: s.runner("controlplane")}).SetupWithManager(ctx, s.Manager)
}

func (s *setup) topology(ctx context.Context) error {
	return (&topology.Reconciler{Client: s.GetClient(), Live: s.GetAPIReader(), Runner: s.runner("topology"), Gather: s.Gather, Predictor: s.predictor}).SetupWithManager(ctx, s.Manager)
}

func (s *setup) ocs(ctx context.Context) error {
	return (&storagecluster.Reconciler{Client: s.GetClient(), Runner: s.runner("storagecluster"), Predictor: s.predictor}).SetupWithManager(ctx, s.Manager)
}
