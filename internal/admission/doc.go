// Package admission decides whether the server has capacity for a request. It has a pool for each
// resource, such as connections or concurrent requests, and gives each caller a share of each pool.
// Because of the shares, a caller that sends too many requests delays only its own requests. Within
// the module, the package imports only graph/errcode and internal/setting.
package admission
