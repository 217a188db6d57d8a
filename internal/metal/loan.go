package metal

import (
	"encoding/json"
	"reflect"

	corev1 "k8s.io/api/core/v1"

	"github.com/edpm-operators/edpm-operators/apis/common"
	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
)

// borrowed are the fields of a host that a claim changes and its release gives back.
type borrowed struct {
	Online                bool                      `json:"online"`
	UserData              *corev1.SecretReference   `json:"userData,omitempty"`
	NetworkData           *corev1.SecretReference   `json:"networkData,omitempty"`
	AutomatedCleaningMode string                    `json:"automatedCleaningMode,omitempty"`
	RootDeviceHints       *metal3v1.RootDeviceHints `json:"rootDeviceHints,omitempty"`
}

// Names of borrowed fields.
const (
	onlineField       = "online"
	cleaningModeField = "automatedCleaningMode"
)

func borrowedOf(host *metal3v1.BareMetalHost) borrowed {
	s := host.Spec
	return borrowed{s.Online, s.UserData, s.NetworkData, s.AutomatedCleaningMode, s.RootDeviceHints}
}

// loan is the value of common.BeforeClaimAnnotation. Both are there because a person may
// change a field while the host is claimed: that stays.
type loan struct {
	Before  borrowed `json:"before"`
	Claimed borrowed `json:"claimed"`
}

// loanOf returns the loan of a host, nil if it has none that can be read: it was claimed by
// an earlier version.
func loanOf(host *metal3v1.BareMetalHost) *loan {
	l := &loan{}
	if err := json.Unmarshal([]byte(host.Annotations[common.BeforeClaimAnnotation]), l); err != nil {
		return nil
	}
	for _, ref := range []**corev1.SecretReference{&l.Before.UserData, &l.Before.NetworkData} {
		if *ref != nil && (*ref).Namespace != "" && (*ref).Namespace != host.Namespace {
			*ref = nil // which baremetal-operator refuses
		}
	}
	return l
}

// newLoan returns what a claim borrows. What a claim before has not given back was not the
// host's own.
func newLoan(host *metal3v1.BareMetalHost, claimed borrowed) (loan, error) {
	own := map[string]any{}
	text, err := json.Marshal(borrowedOf(host))
	if err == nil {
		err = json.Unmarshal(text, &own)
	}
	if err != nil {
		return loan{}, err
	}
	for field, value := range returned(host) {
		own[field] = value
	}
	l := loan{Claimed: claimed}
	if text, err = json.Marshal(withoutNil(own)); err == nil {
		err = json.Unmarshal(text, &l.Before)
	}
	return l, err
}

// returned is the part of a merge patch of the spec that gives back what was borrowed and
// is as it was claimed. A host that is never powered off stays on.
func returned(host *metal3v1.BareMetalHost, but ...string) map[string]any {
	l := loanOf(host)
	if l == nil {
		return map[string]any{}
	}
	before, claimed, present := fieldsOf(l.Before), fieldsOf(l.Claimed), fieldsOf(borrowedOf(host))
	patch := map[string]any{}
	for _, fields := range []map[string]any{before, claimed} {
		for field := range fields {
			if reflect.DeepEqual(present[field], claimed[field]) && !reflect.DeepEqual(before[field], claimed[field]) {
				patch[field] = replacing(present[field], before[field])
			}
		}
	}
	if patch[onlineField] == false && host.Spec.DisablePowerOff {
		delete(patch, onlineField)
	}
	for _, field := range but {
		delete(patch, field)
	}
	return patch
}

// fieldsOf returns the JSON of what consists of nothing that JSON has not.
func fieldsOf(value any) map[string]any {
	fields := map[string]any{}
	text, _ := json.Marshal(value)
	_ = json.Unmarshal(text, &fields)
	return fields
}

// replacing returns a value that, in a merge patch, leaves nothing of the one before.
func replacing(before, after any) any {
	old, isMap := before.(map[string]any)
	fields, areFields := after.(map[string]any)
	if !isMap || !areFields {
		return after
	}
	merged := map[string]any{}
	for field := range old {
		merged[field] = nil
	}
	for field, value := range fields {
		merged[field] = replacing(old[field], value)
	}
	return merged
}

// withoutNil returns the object that a merge patch with nulls makes of nothing.
func withoutNil(fields map[string]any) map[string]any {
	out := map[string]any{}
	for field, value := range fields {
		if nested, ok := value.(map[string]any); ok {
			value = withoutNil(nested)
		}
		if value != nil {
			out[field] = value
		}
	}
	return out
}
