package admission

import "net/netip"

// ipv6NetworkBits is the length in bits of the IPv6 prefix that identifies a caller. Internet
// providers assign at least one network of this size to each customer
// (https://www.rfc-editor.org/rfc/rfc6177).
const ipv6NetworkBits = 64

// Network returns the IPv4 address of a client, or the network prefix of its IPv6 address. remote
// is the client's address and port. If remote is malformed, Network returns an empty string.
func Network(remote string) string {
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
