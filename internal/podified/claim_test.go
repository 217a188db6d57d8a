package podified

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// selected is what the pods of the API are selected by.
var selected = map[string]string{ServiceLabel: "glance", ownerLabel: "glance-a"}

func and(base map[string]string, more ...string) map[string]string {
	all := maps.Clone(base)
	for i := 0; i < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return all
}

// serving is a service whose set has a selector and whose pods have labels. The
// labels that are wanted now are the identity and api=new.
func serving(selector map[string]string, pods ...map[string]string) *deployment {
	d, _ := leaving(&testing.T{})
	api := &glancev1.GlanceAPI{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "glance-a", UID: "uid"}}
	service := (&Service{Name: "s", Labels: map[string]string{"api": "new"}, Claims: []corev1.PersistentVolumeClaim{claim("glance", "1G", nil)}}).labelled(d.identity(api, ""))
	p := &deployment{Deployer: d, Service: service, owner: api}
	if selector != nil {
		p.set = set(func(s *appsv1.StatefulSetSpec) {
			s.Selector.MatchLabels, s.ServiceName = selector, ""
			s.VolumeClaimTemplates[0].Labels = map[string]string{"api": "old"}
		})
		p.set.Annotations = map[string]string{"edpm.openstack.org/applied-hash": "h"}
	}
	for _, labels := range pods {
		p.pods = append(p.pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "s-0", Labels: labels}})
	}
	return p
}

func TestASelectorStaysAsLongAsItSelects(t *testing.T) {
	former, wanted := and(selected, "api", "old"), and(selected, "api", "new")
	for name, c := range map[string]struct {
		p        *deployment
		want     map[string]string
		obsolete string
	}{
		"no set yet":                                       {serving(nil), selected, ""},
		"the selector of today":                            {serving(selected, wanted), selected, ""},
		"pods of a version with other labels":              {serving(selected, former), selected, ""},
		"a selector with more labels, which are wanted":    {serving(wanted, wanted), wanted, ""},
		"a selector with a label that is no longer wanted": {serving(former, former), selected, "its selector cannot be changed in place"},
		"pods that a former set left, of other labels":     {serving(wanted, former), selected, "its selector cannot be changed in place"},
		"a set of this selector, and such pods":            {serving(selected, former, wanted), selected, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.p.want = c.p.statefulSet()
			if diff := cmp.Diff(c.want, c.p.want.Spec.Selector.MatchLabels); diff != "" {
				t.Errorf("the selector differs (-want +got):\n%s", diff)
			}
			if c.p.set == nil {
				return
			}
			if got := c.p.obsolete(); got != c.obsolete {
				t.Errorf("the set is obsolete since %q; want %q", got, c.obsolete)
			}
			if got := c.p.want.Spec.VolumeClaimTemplates[0].Labels["api"]; got != "old" {
				t.Errorf("the claims are labelled %s, which cannot be changed", got)
			}
		})
	}
}

func TestASetOfAnotherOperatorIsMadeAgain(t *testing.T) {
	p := serving(selected, selected)
	p.set.Annotations = map[string]string{common.OwnerAnnotation: "GlanceAPI.glance.openstack.org/glance-a"}
	p.want = p.statefulSet()
	if got := p.obsolete(); got != "it was handed over by another operator" {
		t.Errorf("it is obsolete since %q: containers of the other operator would stay", got)
	}
}

func TestServicesSelectPodsOfEveryVersion(t *testing.T) {
	p := serving(selected)
	p.Headless, p.Services = true, []*corev1.Service{{ObjectMeta: metav1.ObjectMeta{Name: "public"}}}
	for _, service := range p.services() {
		if diff := cmp.Diff(selected, service.Spec.Selector); diff != "" {
			t.Errorf("the selector of Service %s differs (-want +got):\n%s", service.Name, diff)
		}
	}
}

func TestAPodThatNothingWouldSelectStopsEverything(t *testing.T) {
	if err := serving(selected, selected, and(selected, "more", "x")).selectsAll(); err != nil {
		t.Errorf("pods with all labels: %v", err)
	}
	err := serving(selected, selected, map[string]string{ServiceLabel: "glance"}).selectsAll()
	var halt *phase.Halt
	if !errors.As(err, &halt) || halt.Reason != common.ConflictReason {
		t.Fatalf("the error is %v; want a halt for Conflict", err)
	}
	for _, part := range []string{"s-0", "StatefulSet s", "kubectl label pod s-0 owner=glance-a service=glance"} {
		if !strings.Contains(halt.Message, part) {
			t.Errorf("the message %q does not say %q", halt.Message, part)
		}
	}
}

func TestTheSetOfAPod(t *testing.T) {
	owned := func(kind string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Kind: kind, Name: "o", Controller: ptr.To(true)}}
	}
	for name, c := range map[string]struct {
		owners []metav1.OwnerReference
		label  string
		want   string
	}{
		"of a set":                         {owned("StatefulSet"), "s-1", "o"},
		"left by a set":                    {nil, "s-1", "s"},
		"of a Job":                         {owned("Job"), "", ""},
		"of no one":                        {nil, "", ""},
		"a copy of a pod, with its labels": {nil, "s-0", ""},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "s-1", OwnerReferences: c.owners, Labels: map[string]string{appsv1.StatefulSetPodNameLabel: c.label}}}
		if got := strings.Join(setOf(client.Object(pod)), ","); got != c.want {
			t.Errorf("%s: the set is %q; want %q", name, got, c.want)
		}
	}
}
