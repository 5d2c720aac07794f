package webhook

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/internal/httpheader"
)

const (
	maxURL  = 2048
	maxHost = 253
	// Ports below firstPort belong to services such as SSH and mail, except 443.
	firstPort = 1024
)

// hostCharacters are the characters of a host name in lower case.
const hostCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-_."

// useAllowed is the advice for a host that is not public.
const useAllowed = "use a public host, or add the host to ORDERGRAPH_WEBHOOK_ALLOWED_HOSTS"

// CheckURL reports what is wrong with the URL of a webhook, as a commerce.InvalidInput. It looks up
// no name, because the addresses of a name can change. Send checks the address of each connection.
func (s *Sender) CheckURL(text string) error {
	invalid := func(format string, args ...any) error {
		return commerce.NewInvalidInput(commerce.FieldPath("url"), format, args...)
	}
	if len(text) > maxURL {
		return invalid("has %d bytes, but the maximum is %d: use a shorter URL", len(text), maxURL)
	}
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" || u.Host == "" {
		return invalid(`is not a complete URL: use one like "https://shop.example.com/orders"`)
	}
	switch {
	case u.User != nil:
		return invalid("contains a user or a password: remove them, because each request is signed")
	case strings.Contains(text, "#"):
		return invalid("contains a fragment: remove the # and what follows")
	}
	host, port := strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	number, err := strconv.ParseUint(port, 10, 16)
	allowed := s.isAllowed(host, port)
	switch {
	case u.Scheme != "https" && !(u.Scheme == "http" && allowed):
		return invalid("must begin with https://")
	case err != nil:
		return invalid("has an invalid port: use 443, or %d to 65535", firstPort)
	case allowed:
		return nil
	case number != 443 && number < firstPort:
		return invalid("has the port %d: use 443, or %d to 65535", number, firstPort)
	}
	if address, err := netip.ParseAddr(host); err == nil {
		if s.guard.SafeAddr(address) != nil {
			return invalid("has an address that is not public: " + useAllowed)
		}
		return nil
	}
	// Some resolvers take a name for an address whose last label is a number, such as 127.1 or 0x7f.1.
	// Top-level domains begin with a letter.
	last := host[strings.LastIndexByte(host, '.')+1:]
	switch {
	case len(host) > maxHost || strings.Trim(host, hostCharacters) != "":
		return invalid("has a host that is not valid: use the letters a to z, digits, hyphens and dots, and write other letters in Punycode, such as xn--bcher-kva.example")
	case last == "" || last[0] < 'a' || last[0] > 'z':
		return invalid("has a host that is neither a name nor an address: write an IPv4 address as four decimal numbers")
	case httpheader.PrivateName(host) || strings.HasSuffix(host, ".localhost"):
		return invalid("has a host name of a private network: " + useAllowed)
	}
	return nil
}
