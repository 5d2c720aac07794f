// Package admission decides whether the server has capacity for a request. Each limited resource,
// such as connections or concurrent requests, has a pool. Each caller has a share of each pool. A
// caller that sends too many requests therefore delays only its own requests. Within the module,
// the package imports only graph/errcode and internal/setting.
package admission
