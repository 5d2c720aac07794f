// Package admission decides which requests a server takes on. It owns every pool that callers share
// and gives each caller a share of each pool, so that a caller that asks for too much slows itself
// and nobody else. Of the module it imports graph/errcode and internal/setting.
package admission
