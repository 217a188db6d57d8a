package e2e

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/tier"
)

// Where the pods of services go is tested in the package topology; here a real
// glance-api runs in one.
func glanceStories() {
	// There is no keystone: whoever asks is let in, without the role and the project that the
	// policies of glance demand since 2023.2.
	const open = "[paste_deploy]\nflavor =\n[oslo_policy]\nenforce_new_defaults = false\nenforce_scope = false\n"
	glance := &glancev1.Glance{ObjectMeta: named(glanceNS, "glance")}
	pod := &corev1.Pod{ObjectMeta: named(glanceNS, "glance-default-single-0")}

	// images is where the API is.
	images := func(ctx context.Context) string {
		GinkgoHelper()
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
		return "http://" + pod.Status.PodIP + ":9292/v2/images"
	}

	It("runs, takes an image and gives it back", func(ctx SpecContext) {
		create(ctx, &topologyv1.Topology{ObjectMeta: named(glanceNS, "one-per-node"), Spec: topologyv1.TopologySpec{
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule}},
		}})
		glance.Spec.TopologyRef = &topologyv1.TopologyRef{Name: "one-per-node"}
		glance.Spec.GlanceAPIs = map[string]glancev1.GlanceAPITemplate{"default": {APIService: glancev1.APIService{CustomServiceConfig: open}}}
		create(ctx, glance)
		Eventually(current(ctx, glance)).WithTimeout(12 * time.Minute).Should(beReady())

		url := images(ctx)
		status, body := call(ctx, http.MethodPost, url, "application/json", `{"name": "cirros", "disk_format": "raw", "container_format": "bare"}`)
		Expect(status).To(Equal(http.StatusCreated), body)
		var image struct{ ID string }
		Expect(json.Unmarshal([]byte(body), &image)).To(Succeed())
		status, body = call(ctx, http.MethodPut, url+"/"+image.ID+"/file", "application/octet-stream", "what an image is made of")
		Expect(status).To(Equal(http.StatusNoContent), body)
		status, body = call(ctx, http.MethodGet, url+"/"+image.ID+"/file", "", "")
		Expect(status).To(Equal(http.StatusOK), body)
		Expect(body).To(Equal("what an image is made of"))
	}, SpecTimeout(18*time.Minute))

	It("restarts with a changed customServiceConfig, which wins", tier.Long, func(ctx SpecContext) {
		_ = images(ctx)
		before := pod.UID
		mustChange(ctx, glance, func(g *glancev1.Glance) {
			api := g.Spec.GlanceAPIs["default"]
			api.CustomServiceConfig = ""
			g.Spec.GlanceAPIs["default"] = api
		})
		Eventually(func() (bool, error) {
			err := k8s.Get(ctx, client.ObjectKeyFromObject(pod), pod)
			return pod.UID != before && podReady(pod), client.IgnoreNotFound(err)
		}).WithTimeout(9 * time.Minute).Should(BeTrue())
		Eventually(current(ctx, glance)).WithTimeout(3 * time.Minute).Should(beReady())
		status, body := call(ctx, http.MethodGet, images(ctx), "", "")
		Expect(status).To(Equal(http.StatusUnauthorized), body)
	}, SpecTimeout(15*time.Minute))
}

// call sends a request and returns what comes back.
func call(ctx context.Context, method, url, contentType, body string) (int, string) {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Content-Type", contentType)
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return response.StatusCode, string(text)
}
