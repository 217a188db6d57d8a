package nova

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	podifiedv1 "github.com/edpm-operators/edpm-operators/apis/common/podified"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/podified"
)

func TestAnEndpointThatIsBusyIsNotRestarted(t *testing.T) {
	port := intstr.FromInt32(APIPort)
	listens := corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: port}}
	for name, c := range map[string]struct {
		path    string
		tls     *novav1.NovaEndpointTLS
		answers corev1.ProbeHandler
	}{
		"an API":          {"/", nil, corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: port}}},
		"one with TLS":    {"/", &novav1.NovaEndpointTLS{}, corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: port, Scheme: corev1.URISchemeHTTPS}}},
		"a console proxy": {"", nil, listens},
	} {
		t.Run(name, func(t *testing.T) {
			component := &Component{Program: "nova-api-os-compute", Port: APIPort, Path: c.path, TLS: c.tls, Status: new(*podifiedv1.Status)}
			container := component.pod(podified.Snippets{}, Config{}).Containers[0]
			got := []corev1.ProbeHandler{container.StartupProbe.ProbeHandler, container.ReadinessProbe.ProbeHandler, container.LivenessProbe.ProbeHandler}
			if diff := cmp.Diff([]corev1.ProbeHandler{c.answers, c.answers, listens}, got); diff != "" {
				t.Errorf("what the probes of startup, readiness and liveness ask (-want +got):\n%s", diff)
			}
		})
	}
}
