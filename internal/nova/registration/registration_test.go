package registration

import (
	"strings"
	"testing"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

func TestAServiceThatIsDownNamesWhatToLookAt(t *testing.T) {
	since := ptr.To(metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
	for name, c := range map[string]struct {
		service novav1.ComputeServiceStatus
		trouble condition.Reason
		want    string
	}{
		"the host, while the cell is Ready": {
			novav1.ComputeServiceStatus{Host: "h", DownSince: since}, "",
			"nova-compute on host h has not reported to nova since 2026-01-02T03:04:05Z: see the unit edpm_nova_compute",
		},
		"the cell, when it is not": {
			novav1.ComputeServiceStatus{Host: "h", DownSince: since}, "PodsNotReady",
			"nova-compute on host h has not reported to nova since 2026-01-02T03:04:05Z, and NovaCell c is not Ready (PodsNotReady): see its conditions",
		},
		"when it never reported": {novav1.ComputeServiceStatus{Host: "h"}, "", "nova-compute on host h has not reported to nova: see the unit"},
		"how to take it back":    {novav1.ComputeServiceStatus{Host: "h", ForcedDown: true}, "PodsNotReady", "nova-compute on host h is forced down. When the host is back"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (&service{cellName: "c", cellTrouble: c.trouble, words: onHost}).downText(&c.service); !strings.HasPrefix(got, c.want) {
				t.Errorf("it says %q; want %q", got, c.want)
			}
		})
	}
}
