// Package telemetry exports the metrics of a server in Prometheus' format. It imports dynamo,
// internal/admission and packages below them, but no GraphQL library.
package telemetry
