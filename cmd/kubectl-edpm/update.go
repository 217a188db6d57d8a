package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

// updateCommand is one call of kubectl edpm update.
type updateCommand struct {
	connection
	yes     bool
	timeout time.Duration
}

func newUpdate(flags *genericclioptions.ConfigFlags) *cobra.Command {
	u := &updateCommand{connection: connection{flags: flags}}
	cmd := &cobra.Command{
		Use: "update <kind/name>", Short: "Accept the images that a new version of the operators brings", Args: cobra.ExactArgs(1),
		Long: "Show the images that an object runs and those that the operators bring instead, ask,\naccept them, and follow the update until the object is Ready. This sets annotation\n" +
			common.UpdateAnnotation + ". An update of a Nova is checked first; one that the\ncheck refuses changes nothing, and the command ends. There is no way back once the\nschema of a database was updated: back up the databases first.",
		Example: "  kubectl edpm update nova/nova\n  kubectl edpm update glance/glance --yes --timeout 1h",
		RunE: func(cmd *cobra.Command, args []string) error {
			return u.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), args[0])
		},
	}
	cmd.Flags().BoolVarP(&u.yes, "yes", "y", false, "do not ask")
	cmd.Flags().DurationVar(&u.timeout, "timeout", 0, "stop following after this time; the update continues. 0 means never")
	return cmd
}

// released is what the command reads of an object of any kind that records images.
type released struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		common.Release     `json:",inline"`
		Conditions         condition.Conditions `json:"conditions"`
		ObservedGeneration int64                `json:"observedGeneration"`
	} `json:"status"`
}

func (u *updateCommand) run(ctx context.Context, in io.Reader, out io.Writer, arg string) error {
	if err := u.connect(); err != nil {
		return err
	}
	obj, err := u.object(ctx, arg)
	if err != nil {
		return err
	}
	r, err := read(obj)
	if err != nil {
		return err
	}
	if r.Status.Update == nil {
		fmt.Fprintf(out, "%s: the operators bring no other images\n", arg)
		return nil
	}
	if err := u.plan(ctx, out, r); err != nil {
		return err
	}
	if !u.yes && !confirmed(in, out, arg) {
		return errors.New("nothing was changed")
	}
	if err := u.accept(ctx, obj, r.Status.Update.ID); err != nil {
		return err
	}
	return u.follow(ctx, out, obj)
}

// object reads the object that a person names as kind/name.
func (u *updateCommand) object(ctx context.Context, arg string) (*unstructured.Unstructured, error) {
	kind, name, ok := strings.Cut(arg, "/")
	if !ok || kind == "" || name == "" {
		return nil, fmt.Errorf("%q does not name an object: write kind/name, for example nova/nova", arg)
	}
	known, err := u.kinds()
	if err != nil {
		return nil, err
	}
	for _, k := range known {
		if !strings.EqualFold(k.Kind, kind) && !strings.EqualFold(k.Plural, kind) {
			continue
		}
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(k.GroupVersionKind)
		if err := u.client.Get(ctx, client.ObjectKey{Namespace: u.namespace, Name: name}, obj); err != nil {
			return nil, fmt.Errorf("reading %s in namespace %s: %w; kubectl get %s -A lists all", arg, u.namespace, err, k.Plural)
		}
		return obj, nil
	}
	return nil, fmt.Errorf("the cluster has no kind %q of the operators: %s", kind, notInstalled)
}

func read(obj *unstructured.Unstructured) (*released, error) {
	text, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	r := &released{}
	return r, json.Unmarshal(text, r)
}

// confirmed reports whether a person answers with yes.
func confirmed(in io.Reader, out io.Writer, arg string) bool {
	fmt.Fprintf(out, "Update %s? Schemas of databases cannot be changed back. [y/N] ", arg)
	answer, _ := bufio.NewReader(in).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// accept sets the annotation on the object as it was read: what a person did not see is not
// accepted.
func (u *updateCommand) accept(ctx context.Context, obj *unstructured.Unstructured, id string) error {
	before := obj.DeepCopy()
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[common.UpdateAnnotation] = id
	obj.SetAnnotations(annotations)
	if err := u.client.Patch(ctx, obj, client.MergeFrom(before), client.FieldOwner("kubectl-edpm")); err != nil {
		return fmt.Errorf("annotating %s %s: %w", obj.GetKind(), obj.GetName(), err)
	}
	return nil
}

// follow prints what the object reports until it is Ready with the new images.
func (u *updateCommand) follow(ctx context.Context, out io.Writer, obj *unstructured.Unstructured) error {
	ctx, cancel := watchtools.ContextWithOptionalTimeout(ctx, u.timeout)
	defer cancel()
	f, err := u.newFollower(obj.GroupVersionKind(), obj.GetNamespace())
	if err != nil {
		return err
	}
	p := progress{out: out, shown: map[condition.Type]string{}}
	err = f.follow(ctx, obj.GetName(), func(seen *unstructured.Unstructured) (bool, error) {
		r, err := read(seen)
		if err != nil {
			return false, err
		}
		return p.report(r)
	})
	switch {
	case errors.Is(err, errDeleted):
		return fmt.Errorf("%s %s was deleted", obj.GetKind(), obj.GetName())
	case errors.Is(err, errUnfinished):
		return fmt.Errorf("the update was accepted and continues, and is no longer followed: kubectl get %s/%s shows its progress", strings.ToLower(obj.GetKind()), obj.GetName())
	}
	return err
}

// progress of an update prints what changes.
type progress struct {
	out   io.Writer
	shown map[condition.Type]string
}

// report prints what the object says, and reports whether there is no more to follow: it is
// Ready with the new images, or a check refuses them.
func (p progress) report(r *released) (ended bool, err error) {
	ready, check := r.Status.Conditions.Get(condition.ReadyCondition), r.Status.Conditions.Get(novav1.UpgradeCheckReadyCondition)
	if ready == nil || r.Status.Update != nil {
		return false, nil
	}
	p.print(check)
	if check == nil || check.Message != ready.Message {
		p.print(ready)
	}
	if check != nil && check.Status == corev1.ConditionFalse && check.Severity != condition.SeverityInfo {
		return true, fmt.Errorf("the update is refused (%s) and nothing is changed: when that is corrected, it continues; to take it back, run kubectl annotate --namespace %s %s %s %s-",
			check.Reason, r.Namespace, strings.ToLower(r.Kind), r.Name, common.UpdateAnnotation)
	}
	return ready.Status == corev1.ConditionTrue && r.Status.ObservedGeneration == r.Generation, nil
}

// print prints the message of a condition if it is another one than before.
func (p progress) print(c *condition.Condition) {
	if c != nil && p.shown[c.Type] != c.Message {
		p.shown[c.Type] = c.Message
		fmt.Fprintln(p.out, c.Message)
	}
}
