// Package admission decides whether the server has capacity for a request. It has a pool for each
// resource, such as connections or requests, and gives each caller a share of each pool. So a
// caller with too many requests delays only its own requests. Of this module, the package imports
// only graph/errcode and internal/setting.
package admission
