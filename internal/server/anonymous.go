package server

import (
	"net/netip"

	"github.com/ordergraph/ordergraph/commerce"
)

// ipv6NetworkBits is the length in bits of the IPv6 prefix that identifies a caller. Internet
// providers assign at least one network of this size to each customer
// (https://www.rfc-editor.org/rfc/rfc6177).
const ipv6NetworkBits = 64

// anonymousPrincipal returns the principal of a request without a token. Its ID contains the
// network address of the connection, so clients behind the same proxy have the same principal.
func anonymousPrincipal(remote string) commerce.Principal {
	principal := commerce.Principal{ID: "anonymous", Name: "anonymous", Role: commerce.RoleAnonymous}
	if network := remoteNetwork(remote); network != "" {
		principal.ID += "/" + network
	}
	return principal
}

// remoteNetwork returns the IPv4 address of a connection, or the prefix of its IPv6 address. It
// returns an empty string if remote is malformed.
func remoteNetwork(remote string) string {
	addrPort, err := netip.ParseAddrPort(remote)
	if err != nil {
		return ""
	}
	address := addrPort.Addr().Unmap().WithZone("")
	if network, err := address.Prefix(ipv6NetworkBits); err == nil && address.Is6() {
		return network.String()
	}
	return address.String()
}
