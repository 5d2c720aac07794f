package httpheader

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// forwardedFor is the name of a request header. Each proxy appends the address of the connection on which
// the request has arrived.
const forwardedFor = "X-Forwarded-For"

// Proxies are the networks of the proxies whose X-Forwarded-For header is trusted.
type Proxies []netip.Prefix

// ParseProxies parses addresses and networks, such as 192.0.2.1 or 10.0.0.0/8, separated by commas.
// It returns false if one of them is malformed.
func ParseProxies(text string) (Proxies, bool) {
	var all Proxies
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		network, err := netip.ParsePrefix(item)
		if address, addressErr := netip.ParseAddr(item); addressErr == nil {
			network, err = address.Prefix(address.BitLen())
		}
		if err != nil {
			return nil, false
		}
		all = append(all, network)
	}
	return all, true
}

// Trusts reports whether remote, an address with a port, is the address of a trusted proxy.
func (p Proxies) Trusts(remote string) bool {
	addrPort, err := netip.ParseAddrPort(remote)
	return err == nil && p.contain(addrPort.Addr())
}

func (p Proxies) contain(address netip.Addr) bool {
	address = address.Unmap().WithZone("")
	for _, network := range p {
		if network.Contains(address) {
			return true
		}
	}
	return false
}

// ClientAddress returns the address of the client that has sent a request, with a port. remote is
// the address of the connection. If it belongs to a trusted proxy, the client is the last address in
// X-Forwarded-For that does not. Addresses before this one are ignored, because the client could
// have sent them itself. If an address is malformed, the client is the proxy that has sent it.
func (p Proxies) ClientAddress(remote string, header http.Header) string {
	if !p.Trusts(remote) {
		return remote
	}
	hops := strings.Split(strings.Join(header.Values(forwardedFor), ","), ",")
	for i := len(hops) - 1; i >= 0; i-- {
		address, ok := parseHop(strings.TrimSpace(hops[i]))
		if !ok {
			return remote
		}
		remote = net.JoinHostPort(address.String(), "0")
		if !p.contain(address) {
			return remote
		}
	}
	return remote
}

// parseHop parses an address in X-Forwarded-For. Some proxies also write the port.
func parseHop(text string) (netip.Addr, bool) {
	if addrPort, err := netip.ParseAddrPort(text); err == nil {
		return addrPort.Addr(), true
	}
	address, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return address, err == nil
}
