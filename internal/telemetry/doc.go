// Package telemetry measures requests, GraphQL operations and DynamoDB requests. It exports the
// measurements as metrics in Prometheus' format and as traces with OpenTelemetry, and writes them to
// the access log. It also creates the handler of the server's log. Measurements contain no
// documents, variables, keys or records.
package telemetry
