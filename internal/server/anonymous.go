package server

import (
	"net/netip"

	"github.com/ordergraph/ordergraph/commerce"
)

// anonymousNetwork is how many bits of an IPv6 address tell callers apart: one customer of a
// network provider has at least so many addresses (https://www.rfc-editor.org/rfc/rfc6177).
const anonymousNetwork = 64

// anonymous returns the principal of a request without a token. It is named after the address that
// the connection comes from: callers behind one proxy are one principal.
func anonymous(remote string) commerce.Principal {
	who := commerce.Principal{ID: "anonymous", Name: "anonymous", Role: commerce.RoleAnonymous}
	if network := networkOf(remote); network != "" {
		who.ID += "/" + network
	}
	return who
}

// networkOf returns the address that a connection comes from, for IPv6 its network. It returns an
// empty text if the address cannot be read.
func networkOf(remote string) string {
	from, err := netip.ParseAddrPort(remote)
	if err != nil {
		return ""
	}
	address := from.Addr().Unmap().WithZone("")
	if network, err := address.Prefix(anonymousNetwork); err == nil && address.Is6() {
		return network.String()
	}
	return address.String()
}
