// Package nova creates the cells of each Nova, keeps the API database up to date,
// and runs the API and the scheduler.
package nova

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/images"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/nova"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeservice"
	"github.com/edpm-operators/edpm-operators/internal/nova/options"
	"github.com/edpm-operators/edpm-operators/internal/nova/rollout"
	"github.com/edpm-operators/edpm-operators/internal/nova/rotation"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/podified"
	"github.com/edpm-operators/edpm-operators/internal/topology"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// +kubebuilder:rbac:groups=nova.openstack.org,resources=nova,verbs=list;watch;patch
// +kubebuilder:rbac:groups=nova.openstack.org,resources=nova/status,verbs=patch
// +kubebuilder:rbac:groups=nova.openstack.org,resources=nova/finalizers,verbs=update
// +kubebuilder:rbac:groups=nova.openstack.org,resources=novacells,verbs=create;patch;delete
// +kubebuilder:rbac:groups=nova.openstack.org,resources=novaexternalcomputes;novacomputes,verbs=list;watch
// +kubebuilder:rbac:groups=batch,resources=cronjobs,verbs=get;list;watch;create;patch;delete

const (
	fieldManager = "edpm-nova"
)

// Reconciler of Nova.
type Reconciler struct {
	client.Client
	Runner *phase.Runner
	Inputs *inputs.Reader
	Pods   *podified.Deployer
	Images images.Defaults
	// Services of computes, which the API knows.
	Services *computeservice.Observer
	// Options of images, nil if they are not read.
	Options *options.Keeper
	// Known are the options of images, nil if they are not read.
	Known *options.Finder
}

type scope struct {
	*Reconciler
	nova      *novav1.Nova
	passwords map[string][]byte
	cells     []*novav1.NovaCell
	// leaving are the cells that are to be removed and have no computes.
	leaving []*novav1.NovaCell
	config  nova.Config
	secrets *rotation.Holder
	// mappings are the message bus and the database by which each cell is mapped.
	mappings map[string][]byte
	// reached reports whether all services run the images of the update in progress.
	reached bool
	// migrated is how the data of cells was migrated in this reconciliation; nil if no one has asked.
	migrated *worst
	// before is what was said of the services of computes.
	before *condition.Condition
}

// Reconcile brings the cells of one Nova up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	obj := &novav1.Nova{}
	if err := r.Get(ctx, req.NamespacedName, obj); err != nil {
		r.Services.Forget(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s := &scope{Reconciler: r, nova: obj, before: obj.Status.Conditions.Get(novav1.NovaComputeServicesReadyCondition).DeepCopy()}
	s.secrets = s.holder()
	if !obj.DeletionTimestamp.IsZero() {
		r.Services.Forget(req.NamespacedName)
		return ctrl.Result{}, s.release(ctx)
	}
	return r.Runner.Run(ctx, obj, s.phases()...)
}

func (s *scope) phases() []phase.Phase {
	phases := []phase.Phase{
		phase.OptionalOf(common.UpdateAvailableCondition, s.chooseImages),
		phase.Of(condition.InputReadyCondition, s.secrets.Hold, s.readInputs, s.askAPI),
	}
	if s.Options != nil {
		phases = append(phases, phase.InformationalOf(novav1.OptionsKnownCondition, s.readOptions))
	}
	return append(phases,
		phase.Of(novav1.NovaAllCellsReadyCondition, s.applyCells, s.removeCells, s.sumUp),
		phase.Of(novav1.NovaAPIReadyCondition, s.apiInputs),
		phase.OptionalOf(novav1.UpgradeCheckReadyCondition, s.checkUpdate),
		phase.OptionalOf(condition.DBSyncReadyCondition, s.syncDatabase),
		phase.OptionalOf(novav1.UpdateReadyCondition, s.update),
		phase.OptionalOf(novav1.NovaCellMappingsReadyCondition, s.mapCells),
		phase.OptionalOf(novav1.OnlineMigrationsReadyCondition, s.migrateData),
		phase.OptionalOf(novav1.NovaDBPurgeReadyCondition, s.purgeDatabases),
		phase.OptionalOf(novav1.NovaComputeServicesReadyCondition, s.computeServices),
		phase.OptionalOf(condition.DeploymentReadyCondition, s.deploy),
		phase.InformationalOf(novav1.ConfigRolledOutCondition, s.reportRollout))
}

// SetupWithManager adds the controller and its index.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &novav1.Nova{}, databaseIndex, databasesOf); err != nil {
		return err
	}
	b, err := r.Pods.NewController(ctx, mgr, kind)
	if err != nil {
		return err
	}
	return b.
		Owns(&novav1.NovaCell{}, builder.WithPredicates(predicate.Or[client.Object](watch.SpecOrReadyChanges, watch.SpecOr(synced), watch.SpecOr(computesWaitedFor), watch.SpecOr(busOf), watch.SpecOr(rolloutOf)))).
		Watches(&novav1.NovaCell{}, handler.EnqueueRequestsFromMapFunc(watch.GeneratorsOf(mgr.GetClient(), kind.List, "NovaCell")), builder.WithPredicates(watch.Freed)).
		Watches(&appsv1.StatefulSet{}, handler.EnqueueRequestsFromMapFunc(r.novaOfSet), builder.WithPredicates(rollouts)).
		WatchesRawSource(r.Services.Novas()).
		Watches(&novav1.Nova{}, handler.EnqueueRequestsFromMapFunc(r.rivals), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&novav1.NovaExternalCompute{}, handler.EnqueueRequestsFromMapFunc(r.novaOf), builder.WithPredicates(departures)).
		Watches(&novav1.NovaCompute{}, handler.EnqueueRequestsFromMapFunc(r.novaOf), builder.WithPredicates(departures)).
		Complete(r)
}

// kind of the Novas.
var kind = podified.Kind{
	Name: "Nova",
	New:  func() phase.Object { return &novav1.Nova{} },
	List: func() client.ObjectList { return &novav1.NovaList{} },
	Networks: func(obj client.Object) []string {
		spec := obj.(*novav1.Nova).Spec
		return slices.Concat(spec.APIServiceTemplate.NetworkAttachments, spec.SchedulerServiceTemplate.NetworkAttachments)
	},
	Secrets:    secretsOf,
	ConfigMaps: configMapsOf,
	CronJobs:   true,
	Generated:  generated,
}

// secretsOf are the Secrets that a Nova reads, and those that it writes: one of the
// name of each cell, and those of its services and Jobs.
func secretsOf(obj client.Object) []string {
	s := scopeOf(obj)
	names, jobs := append([]string{s.nova.Spec.Secret, s.nova.Spec.NotificationsBusSecretName, s.nova.Spec.CABundleSecretName}, s.nova.Status.HeldSecrets...), append(s.optionsJobs(), databaseJobName(s.nova.Name), discoveryJobName(s.nova.Name), allHostsJobName(s.nova.Name), checkJobName(s.nova.Name))
	for cell, template := range s.nova.Spec.CellTemplates {
		names = append(names, novav1.CellName(s.nova.Name, cell), s.bus(cell, template))
		jobs = append(jobs, mappingJobName(s.nova.Name, cell), migrationsJobName(s.nova.Name, cell), purgeJobName(s.nova.Name, cell))
	}
	return append(names, nova.SecretNames(s.components(), jobs...)...)
}

// configMapsOf are those with files of the services, and the options of their images.
func configMapsOf(obj client.Object) []string {
	s := scopeOf(obj)
	names := nova.ConfigMapNames(s.components())
	for _, image := range s.imagesInUse() {
		names = append(names, options.Name(image))
	}
	return names
}

// generated are the cells of a Nova and its services.
func generated(obj client.Object) []string {
	s := scopeOf(obj)
	entries := nova.Generated(s.components())
	for cell := range s.nova.Spec.CellTemplates {
		entries = append(entries, watch.Generated("NovaCell", novav1.CellName(s.nova.Name, cell)))
	}
	return entries
}

// scopeOf is a scope for what follows from the name and the spec alone.
func scopeOf(obj client.Object) *scope {
	return &scope{Reconciler: &Reconciler{}, nova: obj.(*novav1.Nova)}
}

// departures lets through computes that no longer exist: their cell may be deleted as well.
var departures = predicate.Funcs{
	CreateFunc:  func(event.CreateEvent) bool { return false },
	UpdateFunc:  func(event.UpdateEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// novaOf is the Nova whose cell a compute is in.
func (r *Reconciler) novaOf(ctx context.Context, compute client.Object) []reconcile.Request {
	return r.novaOfCell(ctx, types.NamespacedName{Namespace: compute.GetNamespace(), Name: cellOf(compute)})
}

// rollouts lets through StatefulSets whose pods are updated or become ready, which the next
// step of an update waits for. That the cell is Ready may not change with it, if a manager
// was stopped meanwhile.
var rollouts = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, now := e.ObjectOld.(*appsv1.StatefulSet).Status, e.ObjectNew.(*appsv1.StatefulSet).Status
		return before.ObservedGeneration != now.ObservedGeneration || before.UpdatedReplicas != now.UpdatedReplicas || before.ReadyReplicas != now.ReadyReplicas
	},
	DeleteFunc:  func(event.DeleteEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// novaOfSet is the Nova whose cell a StatefulSet is of.
func (r *Reconciler) novaOfSet(ctx context.Context, set client.Object) []reconcile.Request {
	if owner := metav1.GetControllerOf(set); owner != nil && owner.Kind == "NovaCell" {
		return r.novaOfCell(ctx, types.NamespacedName{Namespace: set.GetNamespace(), Name: owner.Name})
	}
	return nil
}

// novaOfCell is the Nova that a cell is of.
func (r *Reconciler) novaOfCell(ctx context.Context, name types.NamespacedName) []reconcile.Request {
	cell := &novav1.NovaCell{}
	if err := r.Get(ctx, name, cell); err != nil {
		return nil // it no longer exists, nor does its Nova wait for it
	}
	if owner := metav1.GetControllerOf(cell); owner != nil && owner.Kind == "Nova" {
		return []reconcile.Request{watch.Request(name.Namespace, owner.Name)}
	}
	return nil
}

func cellOf(compute client.Object) string {
	if onHost, ok := compute.(*novav1.NovaExternalCompute); ok {
		return onHost.Spec.CellName
	}
	return compute.(*novav1.NovaCompute).Spec.CellName
}

// synced reports whether the schema of the database of a cell is up to date.
func synced(obj client.Object) bool {
	return obj.(*novav1.NovaCell).Status.Conditions.IsTrue(condition.DBSyncReadyCondition)
}

// busOf is how a cell uses its message bus.
func busOf(obj client.Object) string {
	bus := ptr.Deref(obj.(*novav1.NovaCell).Status.MessageBus, novav1.MessageBusStatus{})
	return fmt.Sprint(bus.VirtualHostHash, bus.QuorumQueues)
}

// computesWaitedFor is what an update waits for of the computes of a cell.
func computesWaitedFor(obj client.Object) string {
	cell := obj.(*novav1.NovaCell)
	image := cell.Status.Images[novav1.ComputeComponent]
	return fmt.Sprint(image, rollout.Lagging(cell, image), cell.Status.ComputesRelease)
}

// readInputs is the phase that selects the passwords of the cells. It takes what is there of
// what only services in pods need: they run with the databases whose password is known.
func (s *scope) readInputs(ctx context.Context) error {
	spec, selectors := s.nova.Spec, s.nova.Spec.PasswordSelectors
	data, err := s.Inputs.Secret(ctx, s.nova.Namespace, spec.Secret)
	if err != nil {
		return inputs.Halt(condition.InputReadyCondition, err)
	}
	password, err := inputs.Value(spec.Secret, data, selectors.Service)
	if err != nil {
		return inputs.Halt(condition.InputReadyCondition, err)
	}
	s.passwords = map[string][]byte{novav1.ServicePasswordKey: password}
	for key, selector := range map[string]string{
		novav1.CellDatabasePasswordKey: selectors.CellDatabase, novav1.APIDatabasePasswordKey: selectors.APIDatabase, novav1.MetadataSecretKey: selectors.MetadataSecret,
	} {
		if len(data[selector]) > 0 {
			s.passwords[key] = data[selector]
		}
	}
	return nil
}

// applyCells is the phase that creates and updates the cells, and the Secret of each.
// A cell that cannot be created is in the way of no other.
func (s *scope) applyCells(ctx context.Context) error {
	var first error
	for _, name := range slices.Sorted(maps.Keys(s.nova.Spec.CellTemplates)) {
		if err := s.applyCell(ctx, name); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (s *scope) applyCell(ctx context.Context, name string) error {
	if err := s.applySecret(ctx, name); err != nil {
		return err
	}
	cell := &novav1.NovaCell{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.nova.Namespace, Name: novav1.CellName(s.nova.Name, name)},
		Spec:       s.cellSpec(name, s.nova.Spec.CellTemplates[name]),
	}
	annotations := s.restarts()
	annotations[common.RerunAnnotation] = s.nova.Annotations[common.RerunAnnotation]
	for annotation, value := range annotations {
		if value != "" {
			metav1.SetMetaDataAnnotation(&cell.ObjectMeta, annotation, value)
		}
	}
	present := &novav1.NovaCell{}
	if err := apply.Child(ctx, s.Client, fieldManager, s.nova, cell, present, apply.Own); err != nil {
		return apply.Halt(novav1.NovaAllCellsReadyCondition, err)
	}
	s.cells = append(s.cells, present)
	return nil
}

// restarts are the annotations of cells whose services restart when they change.
func (s *scope) restarts() map[string]string {
	return map[string]string{novav1.ComputesReleaseAnnotation: s.nova.Status.ComputesRelease, novav1.CellMappingsAnnotation: s.nova.Status.ChangedMappings}
}

func (s *scope) applySecret(ctx context.Context, cell string) error {
	name := novav1.CellName(s.nova.Name, cell)
	present, err := s.Inputs.Generated(ctx, s.nova.Namespace, name)
	if err != nil {
		return inputs.Halt(novav1.NovaAllCellsReadyCondition, err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.nova.Namespace, Name: name}, Data: s.credentials(cell)}
	return apply.Halt(novav1.NovaAllCellsReadyCondition, apply.Secret(ctx, s.Client, fieldManager, s.nova, secret, present, apply.Own))
}

// credentials of a cell: each password with its user, in one write.
func (s *scope) credentials(cell string) map[string][]byte {
	n, data := s.nova.Spec, maps.Clone(s.passwords)
	for user, of := range map[string]struct{ password, name string }{
		novav1.ServiceUserKey:      {novav1.ServicePasswordKey, n.ServiceUser},
		novav1.CellDatabaseUserKey: {novav1.CellDatabasePasswordKey, n.CellTemplates[cell].CellDatabaseUser},
		novav1.APIDatabaseUserKey:  {novav1.APIDatabasePasswordKey, n.APIDatabaseUser},
	} {
		if len(data[of.password]) > 0 && of.name != "" {
			data[user] = []byte(of.name)
		}
	}
	return data
}

func (s *scope) cellSpec(name string, t novav1.NovaCellTemplate) novav1.NovaCellSpec {
	n := s.nova.Spec
	spec := novav1.NovaCellSpec{
		CellName: name, Secret: novav1.CellName(s.nova.Name, name), CellMessageBusSecretName: s.bus(name, t),
		KeystoneAuthURL: n.KeystoneAuthURL, ServiceUser: n.ServiceUser, Keystone: n.Keystone, SharedServices: n.SharedServices,
		LiveMigration: t.LiveMigration, NoVNCProxyBaseURL: t.NoVNCProxyBaseURL, CellDatabaseUser: t.CellDatabaseUser, CellDatabaseName: t.CellDatabaseName,
		ConductorServiceTemplate: t.ConductorServiceTemplate, MetadataServiceTemplate: t.MetadataServiceTemplate,
		NoVNCProxyServiceTemplate: t.NoVNCProxyServiceTemplate, ComputeTemplates: t.ComputeTemplates,
		NodeSelector: cmp.Or(t.NodeSelector, n.NodeSelector),
		TopologyRef:  topology.Nearest(t.TopologyRef, n.TopologyRef),
	}
	s.nameImages(name, &spec)
	if len(s.passwords[novav1.CellDatabasePasswordKey]) > 0 && t.CellDatabaseInstance != "" {
		spec.CellDatabaseHostname = s.host(t.CellDatabaseInstance)
	}
	if len(s.passwords[novav1.APIDatabasePasswordKey]) > 0 && t.HasAPIAccess && n.APIDatabaseInstance != "" {
		spec.APIDatabaseHostname, spec.APIDatabaseUser, spec.APIDatabaseName = s.host(n.APIDatabaseInstance), n.APIDatabaseUser, n.APIDatabaseName
	}
	return spec
}

// bus is the Secret with the message bus of a cell.
func (s *scope) bus(cell string, t novav1.NovaCellTemplate) string {
	return cmp.Or(t.CellMessageBusSecretName, fmt.Sprintf("rabbitmq-transport-url-%s-%s-transport", s.nova.Name, cell))
}

// host of a database: that of a Service of the name, or what is no name of a Service
// but a host name or an address.
func (s *scope) host(instance string) string {
	if strings.ContainsAny(instance, ".:") {
		return instance
	}
	return instance + "." + s.nova.Namespace + ".svc"
}

// removeCells is the phase that deletes cells that the Nova no longer
// describes, once they have no computes. Those that an API may know are removed from its
// database first.
func (s *scope) removeCells(ctx context.Context) error {
	all := &novav1.NovaCellList{}
	if err := s.List(ctx, all, client.InNamespace(s.nova.Namespace)); err != nil {
		return fmt.Errorf("listing the cells: %w", err)
	}
	for i := range all.Items {
		cell := &all.Items[i]
		if _, wanted := s.nova.Spec.CellTemplates[cell.ShortName()]; wanted || !metav1.IsControlledBy(cell, s.nova) {
			continue
		}
		n, err := s.computes(ctx, cell)
		if err != nil {
			return err
		}
		if n > 0 {
			return phase.Stalled(novav1.NovaAllCellsReadyCondition, novav1.ComputesRemainingReason,
				"spec.cellTemplates no longer has %s, but NovaCell %s has %d computes: delete their nodes and NovaComputes first, or add the cell to spec.cellTemplates again", cell.ShortName(), cell.Name, n)
		}
		if known := s.wantsAPI() && cell.Spec.CellDatabaseHostname != ""; known && cell.DeletionTimestamp.IsZero() {
			s.leaving = append(s.leaving, cell)
		} else if err := apply.Delete(ctx, s.Client, s.nova, cell, apply.Own); err != nil {
			return err
		}
	}
	return nil
}

// computes counts those of a cell, on hosts and in pods.
func (s *scope) computes(ctx context.Context, cell *novav1.NovaCell) (int, error) {
	onHosts, inPods := &novav1.NovaExternalComputeList{}, &novav1.NovaComputeList{}
	ofCell := client.MatchingFields{"spec.cellName": cell.Name}
	if err := errors.Join(s.List(ctx, onHosts, client.InNamespace(cell.Namespace), ofCell), s.List(ctx, inPods, client.InNamespace(cell.Namespace), ofCell)); err != nil {
		return 0, fmt.Errorf("listing the computes of cell %s: %w", cell.Name, err)
	}
	return len(onHosts.Items) + len(inPods.Items), nil
}

// sumUp is the phase that counts ready cells. The API does not wait for them.
func (s *scope) sumUp(context.Context) error {
	ready, unready := 0, ""
	for _, c := range s.cells {
		if c.IsReady() {
			ready++
		} else if unready == "" {
			unready = c.Name
		}
	}
	s.nova.Status.CellsSummary = fmt.Sprintf("%d/%d", ready, len(s.nova.Spec.CellTemplates))
	mark := &s.nova.Status.Conditions
	if unready == "" {
		mark.MarkTrue(novav1.NovaAllCellsReadyCondition, "%s cells are Ready", s.nova.Status.CellsSummary)
		return nil
	}
	mark.MarkFalse(novav1.NovaAllCellsReadyCondition, novav1.CellsNotReadyReason, condition.SeverityInfo,
		"%s cells are Ready; NovaCell %s is not: see its conditions", s.nova.Status.CellsSummary, unready)
	return nil
}
