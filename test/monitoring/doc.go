// Package monitoring tests the chart's alerts and the queries of its dashboard with
// Prometheus' own engine.
//
// It is a module of its own because Prometheus has many dependencies. It uses only the
// packages that parse and evaluate: the storage is a map, and the "for" of an alert is
// counted here, as Prometheus' manager of rules counts it.
package monitoring
