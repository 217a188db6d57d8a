// Package novacell makes the configuration of the computes of each cell, keeps its
// database up to date, and runs its conductor, metadata service and console proxy.
package novacell

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/images"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/nova"
	"github.com/edpm-operators/edpm-operators/internal/nova/layers"
	"github.com/edpm-operators/edpm-operators/internal/nova/migration"
	"github.com/edpm-operators/edpm-operators/internal/nova/options"
	"github.com/edpm-operators/edpm-operators/internal/nova/rollout"
	"github.com/edpm-operators/edpm-operators/internal/nova/rotation"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/podified"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// +kubebuilder:rbac:groups=nova.openstack.org,resources=novacells,verbs=list;watch;patch
// +kubebuilder:rbac:groups=nova.openstack.org,resources=novacells/status,verbs=patch
// +kubebuilder:rbac:groups=nova.openstack.org,resources=novacells/finalizers,verbs=update
// +kubebuilder:rbac:groups=nova.openstack.org,resources=novaexternalcomputes,verbs=list;watch
// +kubebuilder:rbac:groups="",roleName=manager-secrets-role,resources=secrets,verbs=create;patch

const (
	fieldManager = "edpm-novacell"
	// transportKey is where a cell finds its message bus.
	transportKey = "transport_url"
)

// Reconciler of NovaCell.
type Reconciler struct {
	client.Client
	Runner *phase.Runner
	Inputs *inputs.Reader
	Pods   *podified.Deployer
	Images images.Defaults
	// Gather is how long changes of computes are gathered before they are counted.
	Gather time.Duration
	// Options of images, nil if they are not read.
	Options *options.Keeper
	// Known are the options of images, nil if they are not read.
	Known *options.Finder
}

type scope struct {
	*Reconciler
	cell   *novav1.NovaCell
	config nova.Config
	// secret and bus are the content of the Secrets of the cell, each read once: a user and
	// its password are of one version.
	secret, bus map[string][]byte
	// generated is the configuration of the computes.
	generated []byte
	computes  []novav1.NovaExternalCompute
	inPods    []novav1.NovaCompute
	secrets   *rotation.Holder
	// proxyCertificate has the files by which hosts know the console proxy, nil if there are none.
	proxyCertificate map[string][]byte
}

// Reconcile brings the configuration of one cell up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cell := &novav1.NovaCell{}
	if err := r.Get(ctx, req.NamespacedName, cell); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s := &scope{Reconciler: r, cell: cell}
	s.secrets = s.holder()
	if !cell.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, s.release(ctx)
	}
	return r.Runner.Run(ctx, cell, s.phases()...)
}

func (s *scope) phases() []phase.Phase {
	phases := []phase.Phase{
		phase.OptionalOf(common.UpdateAvailableCondition, s.chooseImages, s.countComputes),
		phase.Of(condition.InputReadyCondition, s.secrets.Hold, s.readInputs),
	}
	if s.cell.ShortName() != novav1.Cell0Name {
		phases = append(phases, phase.Of(novav1.NovaComputeServiceConfigReadyCondition, s.computeConfig), phase.InformationalOf(novav1.MigrationCAReadyCondition, s.migrationCA),
			phase.InformationalOf(novav1.MigrationKeyReadyCondition, s.migrationKey))
		if s.hasConsoleCA() {
			phases = append(phases, phase.InformationalOf(novav1.ConsoleCAReadyCondition, s.consoleCA))
		}
	}
	if s.Options != nil {
		phases = append(phases, phase.InformationalOf(novav1.OptionsKnownCondition, s.readOptions))
	}
	phases = append(phases, phase.Of(novav1.NovaConductorReadyCondition, s.databases))
	if s.withoutConductor() != "" {
		phases = append(phases, phase.OptionalOf(condition.DBSyncReadyCondition, s.syncDatabase), phase.OptionalOf(condition.DeploymentReadyCondition, s.deploy))
	} else {
		phases = append(phases, phase.Of(condition.DBSyncReadyCondition, s.syncDatabase), phase.Of(condition.ServiceConfigReadyCondition))
		phases = append(phases, podified.Phases(s.deploy)...)
	}
	if s.migratesData() {
		phases = append(phases, phase.OptionalOf(novav1.OnlineMigrationsReadyCondition, s.migrateData))
	}
	return append(phases, phase.InformationalOf(novav1.ConfigRolledOutCondition, s.reportRollout))
}

// SetupWithManager adds the controller and its index.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	b, err := r.Pods.NewController(ctx, mgr, kind)
	if err != nil {
		return err
	}
	if r.Options != nil {
		b = b.WatchesMetadata(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.allCells), builder.WithPredicates(predicate.NewPredicateFuncs(options.IsOptions)))
	}
	return b.
		Watches(&novav1.NovaExternalCompute{}, watch.Gather(r.Gather, cellOf), builder.WithPredicates(predicate.Or(rollout.Changes, migration.PeerChanges))).
		Watches(&novav1.NovaCompute{}, watch.Gather(r.Gather, cellOfPods), builder.WithPredicates(rollout.PodChanges)).
		Complete(r)
}

// cellOf is the cell of a compute.
func cellOf(_ context.Context, compute client.Object) []reconcile.Request {
	return []reconcile.Request{watch.Request(compute.GetNamespace(), compute.(*novav1.NovaExternalCompute).Spec.CellName)}
}

// cellOfPods is the cell of a compute in pods.
func cellOfPods(_ context.Context, compute client.Object) []reconcile.Request {
	return []reconcile.Request{watch.Request(compute.GetNamespace(), compute.(*novav1.NovaCompute).Spec.CellName)}
}

// configMapsOf are those with files of the services of a cell and of its computes.
func configMapsOf(obj client.Object) []string {
	cell := obj.(*novav1.NovaCell)
	s := &scope{Reconciler: &Reconciler{}, cell: cell}
	return append(nova.ConfigMapNames(s.components()), layers.Sources("ConfigMap", cell)...)
}

func secretsOf(obj client.Object) []string {
	cell := obj.(*novav1.NovaCell)
	s := &scope{Reconciler: &Reconciler{}, cell: cell}
	return slices.Concat(nova.SecretNames(s.components(), append(s.optionsJobs(), databaseJobName(cell.Name), migrationsJobName(cell.Name))...), layers.Sources("Secret", cell), cell.Status.HeldSecrets, []string{
		cell.Spec.Secret, cell.Spec.CellMessageBusSecretName, cell.Spec.NotificationsBusSecretName, cell.Spec.CABundleSecretName, novav1.ComputeConfigSecretName(cell.Name),
		cell.Spec.MigrationCASecretName, novav1.MigrationCASecretName(cell.Name), novav1.MigrationKeySecretName(cell.Name), novav1.ConsoleCASecretName(cell.Name),
	})
}

// kind of the cells.
var kind = podified.Kind{
	Name: "NovaCell",
	New:  func() phase.Object { return &novav1.NovaCell{} },
	List: func() client.ObjectList { return &novav1.NovaCellList{} },
	Networks: func(obj client.Object) []string {
		spec := obj.(*novav1.NovaCell).Spec
		return slices.Concat(spec.ConductorServiceTemplate.NetworkAttachments, spec.MetadataServiceTemplate.NetworkAttachments, spec.NoVNCProxyServiceTemplate.NetworkAttachments)
	},
	Secrets:    secretsOf,
	ConfigMaps: configMapsOf,
	Generated: func(obj client.Object) []string {
		return nova.Generated((&scope{Reconciler: &Reconciler{}, cell: obj.(*novav1.NovaCell)}).components())
	},
}

// readInputs is the phase that reads what the configuration is made from.
func (s *scope) readInputs(ctx context.Context) error {
	spec := s.cell.Spec
	for _, required := range []struct{ field, value string }{
		{"spec.secret", spec.Secret},
		{"spec.cellMessageBusSecretName", spec.CellMessageBusSecretName},
		{"spec.keystoneAuthURL", spec.KeystoneAuthURL},
	} {
		if required.value == "" && (s.cell.ShortName() != novav1.Cell0Name || s.withoutConductor() == "") {
			return phase.Stalled(condition.InputReadyCondition, novav1.InvalidSpecReason,
				"%s is empty: set it, or have a Nova create this cell", required.field)
		}
	}
	if spec.DatabaseTLS && spec.CABundleSecretName == "" {
		return phase.Stalled(condition.InputReadyCondition, novav1.InvalidSpecReason,
			"spec.databaseTLS needs the authorities of the databases: set spec.caBundleSecretName, or spec.databaseTLS to false")
	}
	s.config = nova.Config{
		Owner: "NovaCell " + s.cell.Name, KeystoneAuthURL: spec.KeystoneAuthURL,
		Keystone: spec.Keystone, NoVNCProxyBaseURL: spec.NoVNCProxyBaseURL,
	}
	err := s.readSecrets(ctx)
	if err == nil {
		err = s.config.ReadShared(ctx, s.Inputs, condition.InputReadyCondition, s.cell.Namespace, spec.SharedServices)
	}
	if err != nil {
		return inputs.Halt(condition.InputReadyCondition, err)
	}
	if spec.CellMessageBusSecretName == "" {
		return nil // as in readSecrets
	}
	return s.chooseQueues(ctx)
}

// chooseQueues decides which queues the cell uses, and notes it.
func (s *scope) chooseQueues(ctx context.Context) error {
	name := s.cell.Spec.CellMessageBusSecretName
	requested, err := nova.ParseQueues(string(s.bus[nova.QuorumQueuesKey]))
	if err != nil {
		return phase.Stalled(condition.InputReadyCondition, novav1.InvalidConfigReason, "Secret %s: %v", name, err)
	}
	used, err := s.usedQueues(ctx, requested)
	if err != nil {
		return inputs.Halt(condition.InputReadyCondition, err)
	}
	queues, err := nova.Queues(used, s.config.TransportURL, requested)
	if err != nil {
		return phase.Stalled(condition.InputReadyCondition, novav1.QueueTypeChangedReason, "Secret %s: %v", name, err)
	}
	s.cell.Status.MessageBus = queues
	s.config.UseQueues(queues)
	return nil
}

// usedQueues returns how the cell has used its message bus so far, nil for a new cell. One
// that was restored from a backup without its status looks like a new one, but for what was
// generated for it.
func (s *scope) usedQueues(ctx context.Context, requested *bool) (*novav1.MessageBusStatus, error) {
	if used := nova.UsedQueues(s.cell, s.config.TransportURL, requested); used != nil {
		return used, nil
	}
	for _, name := range []string{novav1.ComputeConfigSecretName(s.cell.Name), podified.ConfigName(novav1.ConductorName(s.cell.Name))} {
		generated, err := s.Inputs.Generated(ctx, s.cell.Namespace, name)
		if err != nil {
			return nil, err
		}
		if generated == nil {
			continue
		}
		if used := nova.GeneratedQueues(string(generated.Data[novav1.GeneratedConfigKey]), requested); used != nil {
			return used, nil
		}
	}
	return nil, nil
}

// readSecrets reads the Secrets of the cell. Only cell0 without a conductor has none.
func (s *scope) readSecrets(ctx context.Context) error {
	spec := s.cell.Spec
	for _, want := range []struct {
		name    string
		content *map[string][]byte
		key     string
		into    *string
	}{
		{spec.Secret, &s.secret, novav1.ServicePasswordKey, &s.config.ServicePassword},
		{spec.CellMessageBusSecretName, &s.bus, transportKey, &s.config.TransportURL},
	} {
		if want.name == "" {
			continue
		}
		data, err := s.Inputs.Secret(ctx, s.cell.Namespace, want.name)
		if err != nil {
			return err
		}
		value, err := inputs.Value(want.name, data, want.key)
		if err != nil {
			return err
		}
		*want.content, *want.into = data, strings.TrimRight(string(value), "\r\n")
	}
	s.config.ServiceUser = s.user(novav1.ServiceUserKey, spec.ServiceUser)
	return nil
}

// user is the one that the Secret has next to its password, else that of the spec.
func (s *scope) user(key, spec string) string {
	return cmp.Or(strings.TrimSpace(string(s.secret[key])), spec)
}

// computeConfig is the phase that writes the Secret with the configuration of
// the computes.
func (s *scope) computeConfig(ctx context.Context) error {
	name := novav1.ComputeConfigSecretName(s.cell.Name)
	present, err := s.Inputs.Generated(ctx, s.cell.Namespace, name)
	if err != nil {
		return inputs.Halt(novav1.NovaComputeServiceConfigReadyCondition, err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.cell.Namespace, Name: name}}
	if s.isCurrent(present) {
		secret.Data = present.Data
	} else if secret.Data, err = s.computeFiles(); err != nil {
		return err
	}
	if err := apply.Secret(ctx, s.Client, fieldManager, s.cell, secret, present, apply.Own); err != nil {
		return apply.Halt(novav1.NovaComputeServiceConfigReadyCondition, err)
	}
	status := &s.cell.Status
	status.ComputeConfigSecretName, status.ComputeConfigInputs = name, s.config.ComputeInputs()
	status.Hash = map[string]string{name: inputs.Digest(secret.Data)}
	s.generated = secret.Data[novav1.GeneratedConfigKey]
	status.Conditions.MarkTrue(novav1.NovaComputeServiceConfigReadyCondition, condition.ServiceConfigReadyMessage)
	return nil
}

// isCurrent reports whether the Secret is as the cell has written it, with the present
// inputs. Another version of the operators may have other settings: computes are not
// configured again for them alone.
func (s *scope) isCurrent(present *corev1.Secret) bool {
	status := s.cell.Status
	if present == nil || status.Hash[present.Name] != inputs.Digest(present.Data) {
		return false
	}
	if status.ComputeConfigInputs == "" {
		return s.config.HasMade(string(present.Data[novav1.GeneratedConfigKey]))
	}
	return status.ComputeConfigInputs == s.config.ComputeInputs()
}

func (s *scope) computeFiles() (map[string][]byte, error) {
	text, err := s.config.Compute()
	if err != nil {
		return nil, phase.Stalled(novav1.NovaComputeServiceConfigReadyCondition, novav1.InvalidConfigReason,
			"%v: check the Secrets %s and %s", err, s.cell.Spec.Secret, s.cell.Spec.CellMessageBusSecretName)
	}
	return map[string][]byte{novav1.GeneratedConfigKey: []byte(text)}, nil
}
