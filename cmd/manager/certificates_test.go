package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// asked is a manager of which only the configuration is of interest.
type asked struct {
	manager.Manager
	config *rest.Config
}

func (m asked) GetConfig() *rest.Config { return m.config }

func TestTheRotatorAsksForOneSecret(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.URL.String() }))
	defer server.Close()
	plain := asked{config: &rest.Config{Host: server.URL}}
	c, err := rest.HTTPClientFor(oneSecretManager{plain, types.NamespacedName{Namespace: "system", Name: "cert"}}.GetConfig())
	if err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]string{
		"/api/v1/namespaces/system/secrets?limit=500&watch=true": "/api/v1/namespaces/system/secrets?fieldSelector=metadata.name%3Dcert&limit=500&watch=true",
		"/api/v1/namespaces/system/secrets/cert":                 "/api/v1/namespaces/system/secrets/cert",
		"/apis/admissionregistration.k8s.io/v1/x?watch=true":     "/apis/admissionregistration.k8s.io/v1/x?watch=true",
	} {
		response, err := c.Get(server.URL + url)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if got != want {
			t.Errorf("%s is sent as %s; want %s", url, got, want)
		}
	}
	if plain.config.WrapTransport != nil {
		t.Error("the other clients of the manager ask for one Secret too")
	}
}
