package server

import (
	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/internal/admission"
)

// anonymousPrincipal returns the principal of a request without a token. Its ID contains the
// network address of the connection, so clients behind the same proxy have the same principal.
func anonymousPrincipal(remote string) commerce.Principal {
	principal := commerce.Principal{ID: "anonymous", Name: "anonymous", Role: commerce.RoleAnonymous}
	if network := admission.Network(remote); network != "" {
		principal.ID += "/" + network
	}
	return principal
}
