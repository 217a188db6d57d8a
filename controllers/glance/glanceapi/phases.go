package glanceapi

import (
	"context"
	"fmt"
	"strings"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	podifiedv1 "github.com/edpm-operators/edpm-operators/apis/common/podified"
	"github.com/edpm-operators/edpm-operators/internal/glance"
	"github.com/edpm-operators/edpm-operators/internal/identity"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/podified"
)

// readInputs is the phase that reads the Secrets.
func (s *scope) readInputs(ctx context.Context) error {
	spec := s.api.Spec
	if storage := spec.Storage; !glance.External(storage) && storage.StorageRequest == nil {
		return phase.Stalled(condition.InputReadyCondition, podifiedv1.InvalidSpecReason,
			"spec.storage.storageRequest is empty: set it to the size of the claims, for example 10G, or set spec.storage.external to true")
	}
	var err error
	if s.snippets, err = podified.ReadSnippets(ctx, s.Inputs, identity.Image, s.api.Namespace, "spec.customServiceConfig", spec.CustomServiceConfig, spec.CustomServiceConfigSecrets); err != nil {
		return err
	}
	s.config = configInputs{
		Name: s.api.Name, Port: glance.Port, FileStore: !s.snippets.Sets("DEFAULT", "enabled_backends"),
		KeystoneAuthURL: spec.KeystoneAuthURL, ServiceUser: spec.ServiceUser,
	}
	if err := s.identity(ctx); err != nil {
		return err
	}
	return s.database(ctx)
}

// identity reads the password of the service user.
func (s *scope) identity(ctx context.Context) error {
	if s.api.Spec.KeystoneAuthURL == "" {
		return nil
	}
	var err error
	s.config.ServicePassword, err = s.password(ctx, "spec.keystoneAuthURL", s.api.Spec.PasswordSelectors.Service)
	return err
}

// database finds the connection: that which people give, else the server of the
// spec, else a database of the pod's own.
func (s *scope) database(ctx context.Context) error {
	spec := s.api.Spec
	switch {
	case s.snippets.Sets("database", "connection"):
		return nil
	case spec.DatabaseHostname == "":
		s.config.Connection = ownDatabase
		return nil
	}
	password, err := s.password(ctx, "spec.databaseHostname", spec.PasswordSelectors.Database)
	s.config.Connection = podified.MySQL(spec.DatabaseHostname, spec.DatabaseAccount, password, "glance")
	return err
}

// password reads a key of the Secret that a field needs.
func (s *scope) password(ctx context.Context, field, key string) (string, error) {
	if s.api.Spec.Secret == "" {
		return "", phase.Stalled(condition.InputReadyCondition, podifiedv1.InvalidSpecReason,
			"spec.secret is empty, and %s needs a password: set it to a Secret with the key %s", field, key)
	}
	value, err := s.Inputs.SecretKey(ctx, s.api.Namespace, s.api.Spec.Secret, key)
	return strings.TrimRight(string(value), "\r\n"), inputs.Halt(condition.InputReadyCondition, err)
}

// serviceConfig is the phase that makes the configuration.
func (s *scope) serviceConfig(context.Context) error {
	text, err := s.config.render()
	if err != nil {
		return phase.Stalled(condition.ServiceConfigReadyCondition, podifiedv1.InvalidConfigReason, "%v: check Secret %s", err, s.api.Spec.Secret)
	}
	s.files = s.snippets.Files("glance", text)
	message := condition.ServiceConfigReadyMessage
	if s.config.Connection == ownDatabase {
		message = "No database is configured: each pod has its own, which is lost with its storage and which other pods cannot access. " +
			"Set spec.databaseHostname, or [database] connection in a Secret of customServiceConfigSecrets"
	}
	s.api.Status.Conditions.MarkTrue(condition.ServiceConfigReadyCondition, "%s", message)
	return nil
}

// sharesDatabase reports whether the pods have one database, on a server, rather than
// each a file of its own.
func (s *scope) sharesDatabase() bool {
	connection, given := s.snippets.Value("database", "connection")
	if !given {
		connection = s.config.Connection
	}
	return !strings.HasPrefix(connection, "sqlite")
}

// syncDatabase is the phase that updates the schema of a database that the pods
// share. Each of the others is updated in its pod.
func (s *scope) syncDatabase(ctx context.Context) error {
	if !s.sharesDatabase() {
		err := s.Pods.KeepJobs(ctx, s.api, s.api.Status.Jobs)
		s.api.Status.Jobs = nil
		return err
	}
	if s.api.Status.Jobs == nil {
		s.api.Status.Jobs = map[string]string{}
	}
	job := &podified.Job{
		Name: jobName(s.api), Purpose: "update the schema of glance's database", Image: s.image(), Commands: [][]string{manage},
		Config: s.files, ConfigDir: configDir, Writable: dataDir, User: user, NodeSelector: podified.Selected(s.api.Spec.NodeSelector),
		NetworkAttachments: s.api.Spec.NetworkAttachments, Resources: s.api.Spec.Resources,
	}
	if err := s.Pods.RunJob(ctx, s.api, condition.DBSyncReadyCondition, s.api.Status.Jobs, job); err != nil {
		return err
	}
	s.api.Status.Conditions.MarkTrue(condition.DBSyncReadyCondition, "The schema of the database is up to date")
	return nil
}

// deploy is the phase that runs the pods.
func (s *scope) deploy(ctx context.Context) error {
	s.api.Status.APIEndpoint = s.endpoints()
	return s.Pods.Deploy(ctx, s.api, s.service())
}

// endpoints are the addresses by which the API is reached.
func (s *scope) endpoints() map[string]string {
	urls := map[string]string{}
	for _, endpoint := range s.api.Spec.APIType.Endpoints() {
		urls[endpoint] = fmt.Sprintf("http://%s.%s.svc:%d", glance.ServiceName(s.api.ShortName(), endpoint), s.api.Namespace, glance.Port)
		if url := s.api.Spec.Override.Service[endpoint].EndpointURL; url != "" {
			urls[endpoint] = url
		}
	}
	return urls
}
