package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// apiClient speaks to the apiserver as admin. The lab needs four requests, and
// building it must stay quick: so no client-go.
type apiClient struct {
	base string
	http *http.Client
}

var (
	errExists   = errors.New("already exists")
	errNotFound = errors.New("not found")
)

func (l *Lab) api() (*apiClient, error) {
	ca, err := os.ReadFile(l.path("pki", "ca.crt"))
	if err != nil {
		return nil, errNotRunning
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	pair, err := tls.LoadX509KeyPair(l.path("pki", "admin.crt"), l.path("pki", "admin.key"))
	if err != nil {
		return nil, errNotRunning
	}
	config := &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}
	return &apiClient{base: l.apiURL(), http: newHTTPClient(config)}, nil
}

func newHTTPClient(config *tls.Config) *http.Client {
	return &http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{TLSClientConfig: config, MaxIdleConnsPerHost: 16},
	}
}

// do sends body as JSON and decodes the answer into out; both may be nil.
func (a *apiClient) do(ctx context.Context, method, path string, body, out any) error {
	payload, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, a.base+path, bytes.NewReader(payload))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := a.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if err := statusError(response.StatusCode, answer); err != nil || out == nil {
		return err
	}
	return json.Unmarshal(answer, out)
}

func statusError(code int, answer []byte) error {
	switch {
	case code < 300:
		return nil
	case code == http.StatusConflict:
		return errExists
	case code == http.StatusNotFound:
		return errNotFound
	}
	return fmt.Errorf("apiserver answers %d: %.300s", code, answer)
}

// healthy returns a probe of an HTTP endpoint whose certificate, if any, is
// self-signed and on loopback.
func healthy(url string) func(context.Context) error {
	client := newHTTPClient(&tls.Config{InsecureSkipVerify: true})
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %d", url, response.StatusCode)
		}
		return nil
	}
}

// nodeReady returns nil once the named node is Ready.
func (a *apiClient) nodeReady(ctx context.Context, name string) error {
	var node node
	if err := a.do(ctx, http.MethodGet, "/api/v1/nodes/"+name, nil, &node); err != nil {
		return err
	}
	if !node.ready() {
		return fmt.Errorf("node %s is not Ready", name)
	}
	return nil
}

// node is the part of a Node that the lab writes and reads.
type node struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Metadata   metadata   `json:"metadata"`
	Spec       nodeSpec   `json:"spec"`
	Status     nodeStatus `json:"status"`
}

type metadata struct {
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type nodeSpec struct {
	Taints []taint `json:"taints,omitempty"`
}

type taint struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Effect string `json:"effect"`
}

type nodeStatus struct {
	Capacity    map[string]string `json:"capacity,omitempty"`
	Allocatable map[string]string `json:"allocatable,omitempty"`
	Conditions  []nodeCondition   `json:"conditions,omitempty"`
}

type nodeCondition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
}

func (n node) ready() bool {
	for _, c := range n.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True"
		}
	}
	return false
}
