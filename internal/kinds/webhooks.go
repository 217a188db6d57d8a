package kinds

import (
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// Webhook is what the API server asks the manager before it stores an object.
type Webhook struct {
	Name, Path string
	Kind       Kind
	Mutating   bool
	Failure    admissionv1.FailurePolicyType
	// Conditions of a call. A webhook that is not up must not stand in the way of writes
	// that it has nothing to say about. Status is in no rule, and deletion is always allowed.
	Conditions []admissionv1.MatchCondition
}

// specChanges lets a webhook be called for writes that touch the spec only: not for
// finalizers, annotations or labels. There may be none, "object.?spec" says, so that the
// condition cannot fail.
var specChanges = admissionv1.MatchCondition{
	Name: "spec-changes", Expression: `request.operation == "CREATE" || object.?spec != oldObject.?spec`,
}

// specOrAnnotationChanges is specChanges for nodes, of which annotations have values that can
// be wrong.
var specOrAnnotationChanges = admissionv1.MatchCondition{
	Name: "spec-or-annotation-changes", Expression: specChanges.Expression + ` || object.metadata.?annotations != oldObject.metadata.?annotations`,
}

// validates says for which writes the validation of a kind is called.
func validates(k Kind) admissionv1.MatchCondition {
	if k.GroupVersionKind == node {
		return specOrAnnotationChanges
	}
	return specChanges
}

const (
	cellOf  = `metadata.?annotations[?"nova.openstack.org/cell"]`
	roleOf  = `?spec.?role.orValue("")`
	setCell = "sets-or-changes-cell"
)

// cellRules are the two webhooks of the cell rule (seeds/004). They are called only for
// writes that touch the annotation or the role, and writes are rejected while they do not
// answer. A new node is in the cell of its role, which the API server does not know:
// the webhook is called for every new node with a role.
func cellRules() []Webhook {
	rule := func(k Kind, created, changed string) Webhook {
		return Webhook{
			Name: "vnovacell-" + k.word() + ".kb.io", Path: "/validate-nova-cell-" + k.word(), Kind: k, Failure: admissionv1.Fail,
			Conditions: []admissionv1.MatchCondition{{Name: setCell, Expression: fmt.Sprintf(`request.operation == "CREATE" ? (%s) : (%s)`, created, changed)}},
		}
	}
	var rules []Webhook
	for _, k := range Table {
		created, changed := `object.`+cellOf+`.orValue("") != ""`, `object.`+cellOf+` != oldObject.`+cellOf
		switch k.GroupVersionKind {
		case node:
			rules = append(rules, rule(k, created+` || object.`+roleOf+` != ""`, changed+` || object.`+roleOf+` != oldObject.`+roleOf))
		case role:
			rules = append(rules, rule(k, created, changed))
		}
	}
	return rules
}

// Webhooks returns all webhooks: those of the cell rule, and those of each kind.
func Webhooks() []Webhook {
	hooks := cellRules()
	for _, k := range Table {
		path := strings.ReplaceAll(k.Group, ".", "-") + "-" + k.Version + "-" + k.word()
		if k.Defaulting != nil {
			hooks = append(hooks, Webhook{
				Name: "m" + k.word() + ".kb.io", Path: "/mutate-" + path, Kind: k, Mutating: true, Failure: admissionv1.Fail,
				Conditions: []admissionv1.MatchCondition{specChanges, *k.Defaulting},
			})
		}
		hooks = append(hooks, Webhook{
			Name: "v" + k.word() + ".kb.io", Path: "/validate-" + path, Kind: k, Failure: k.Validation,
			Conditions: []admissionv1.MatchCondition{validates(k)},
		})
	}
	return hooks
}
