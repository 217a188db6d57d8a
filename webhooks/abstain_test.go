package webhooks

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
)

const review = `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u", "operation": "CREATE",
	"object": {"apiVersion": "glance.openstack.org/v1beta1", "kind": "Glance", "metadata": {"name": "theirs"}, "spec": {"unknown": true}}}}`

func TestKindsOfOthersAreLeftAlone(t *testing.T) {
	h := abstain([]string{"nova", "topology"})
	for path, want := range map[string]int{
		"/validate-glance-openstack-org-v1beta1-glance": http.StatusOK,
		"/mutate-glance-openstack-org-v1beta1-glance":   http.StatusOK,
		// The manager should serve these itself: a mistake must not look like a yes.
		"/validate-nova-openstack-org-v1beta1-nowhere": http.StatusNotFound,
		"/validate-nova-cell-nowhere":                  http.StatusNotFound,
		"/":                                            http.StatusNotFound,
	} {
		request := httptest.NewRequest(http.MethodPost, path, strings.NewReader(review))
		request.Header.Set("Content-Type", "application/json")
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, request)
		if answer.Code != want {
			t.Errorf("%s is answered %d; want %d", path, answer.Code, want)
		}
		if want != http.StatusOK {
			continue
		}
		got := admissionv1.AdmissionReview{}
		if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || got.Response == nil || !got.Response.Allowed || len(got.Response.Patch) > 0 {
			t.Errorf("%s says %s (%v); want a yes that changes nothing", path, answer.Body, err)
		}
	}
}
