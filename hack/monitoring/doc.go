// Package monitoring has the tests of config/prometheus and config/grafana. They
// use the code of Prometheus itself, and are a module of their own so that none of
// that enters the manager's.
package monitoring
