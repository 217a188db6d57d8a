package coexistence

import (
	"context"
	"fmt"
	"reflect"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Watcher follows the resource definitions that decide which operators run.
type Watcher struct {
	operators []string
	informers map[string]toolscache.SharedIndexInformer
}

// NewWatcher returns once it is known which definitions there are.
func NewWatcher(ctx context.Context, config *rest.Config, operators []string) (*Watcher, error) {
	c, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	w := &Watcher{operators: operators, informers: map[string]toolscache.SharedIndexInformer{}}
	for _, name := range Names(operators) {
		only := func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("metadata.name", name).String()
		}
		informer := metadatainformer.NewFilteredMetadataInformer(c, apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"), "", 0, toolscache.Indexers{}, only).Informer()
		w.informers[name] = informer
		go informer.RunWithContext(ctx)
	}
	for name, informer := range w.informers {
		if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return nil, fmt.Errorf("reading definition %s: %w", name, context.Cause(ctx))
		}
	}
	return w, nil
}

// Decide returns which operators run with the definitions that there are now.
func (w *Watcher) Decide() Decision {
	found := Definitions{}
	for name, informer := range w.informers {
		if obj, exists, _ := informer.GetStore().GetByKey(name); exists { // a store in memory knows no errors
			found[name] = Ours(obj.(*metav1.PartialObjectMetadata).Labels)
		}
	}
	return Decide(w.operators, found)
}

// WhenChanged calls stop, once or more often, when the decision is another one.
func (w *Watcher) WhenChanged(decision Decision, stop func()) error {
	look := func() {
		if now := w.Decide(); !reflect.DeepEqual(now, decision) {
			ctrl.Log.Info("Restarting: the operators that can run or the kinds that they watch have changed",
				"before", decision.Running, "now", now.Running, "watchedBefore", decision.Watched, "watchedNow", now.Watched)
			stop()
		}
	}
	for name, informer := range w.informers {
		_, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { look() }, UpdateFunc: func(any, any) { look() }, DeleteFunc: func(any) { look() },
		})
		if err != nil {
			return fmt.Errorf("watching definition %s: %w", name, err)
		}
	}
	return nil
}
