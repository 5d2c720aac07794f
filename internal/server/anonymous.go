package server

import (
	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/internal/admission"
)

// anonymousPrincipal returns the principal of a request without a token. The principal's ID
// contains the network address of the connection. Clients behind the same proxy therefore have the
// same principal.
func anonymousPrincipal(remote string) access.Principal {
	principal := access.Principal{ID: "anonymous", Name: "anonymous", Role: access.RoleAnonymous}
	if network := admission.Network(remote); network != "" {
		principal.ID += "/" + network
	}
	return principal
}
