// Package admission decides which requests a server accepts. It owns every pool that callers share,
// and gives each caller a share of each pool. A caller that requests too much slows down only its
// own requests. The package imports only graph/errcode and internal/setting of the module.
package admission
