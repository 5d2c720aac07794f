// Package telemetry exports the metrics of a server in Prometheus' format. Within the module, it
// imports only internal/admission, dynamo and packages in the folder dynamo. It imports no GraphQL
// library.
package telemetry
