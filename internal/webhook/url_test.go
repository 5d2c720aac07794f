package webhook_test

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"code.dny.dev/ssrf"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/internal/webhook"
)

// urls are the URLs that CheckURL is tested with: each has a part of the error, or an empty text if
// it is valid.
var urls = []struct{ url, err string }{
	{"https://shop.example.com/orders", ""},
	{"https://shop.example.com", ""},
	{"HTTPS://Shop.Example.COM.:443/a%20b?token=a", ""},
	{"https://shop.example.com:8443/?token=a", ""},
	{"https://xn--bcher-kva.example/", ""},
	{"https://9.9.9.9/", ""},
	{"https://9.9.9.9.:65535/", ""},
	{"https://[2620:fe::fe]:1024/", ""},
	{"https://shop.example.com/" + strings.Repeat("a", 2048-25), ""},

	{"https://shop.example.com/" + strings.Repeat("a", 2048-24), "url has 2049 bytes, but the maximum is 2048"},
	{"", "not a complete URL"},
	{"shop.example.com", "not a complete URL"},
	{"//shop.example.com", "must begin with https://"},
	{"https:shop.example.com", "not a complete URL"},
	{"https:///orders", "not a complete URL"},
	{"https://", "not a complete URL"},
	{"https://shop.example.com\n", "not a complete URL"},
	{"https://shop.example.com\x00", "not a complete URL"},
	{" https://shop.example.com", "not a complete URL"},
	{"https://shop.example.com\\@10.0.0.1/", "not a complete URL"},
	{"https://%73hop.example.com/", "not a complete URL"},
	{"https://127%2e0.0.1/", "not a complete URL"},
	{"https://[::1", "not a complete URL"},
	{"https://[127.0.0.1]/", "not a complete URL"},
	{"https://[shop.example.com]/", "not a complete URL"},
	{"http://shop.example.com", "must begin with https://"},
	{"ftp://shop.example.com", "must begin with https://"},
	{"file:///etc/passwd", "not a complete URL"},
	{"file://shop.example.com/etc/passwd", "must begin with https://"},
	{"gopher://127.0.0.1:6379/_INFO", "must begin with https://"},
	{"javascript:alert(1)", "not a complete URL"},
	{"https://shop@10.0.0.1/", "contains a user or a password"},
	{"https://user:hidden@shop.example.com/", "contains a user or a password"},
	{"https://shop.example.com#@10.0.0.1", "contains a fragment"},
	{"https://shop.example.com/#", "contains a fragment"},
	{"https://shop.example.com:0/", "has the port 0"},
	{"https://shop.example.com:22/", "has the port 22: use 443, or 1024 to 65535"},
	{"https://shop.example.com:80/", "has the port 80"},
	{"https://shop.example.com:65536/", "has an invalid port"},
	{"https://shop.example.com:99999999999999999999/", "has an invalid port"},
	{"https://shop.example.com:https/", "not a complete URL"},

	{"https://localhost/", "private network"},
	{"https://LOCALHOST./", "private network"},
	{"https://api.localhost/", "private network"},
	{"https://server/", "private network"},
	{"https://printer.local/", "private network"},
	{"https://metadata.google.internal/", "private network"},
	{"https://instance-data.ec2.internal./", "private network"},

	{"https://127.0.0.1/", "not public"},
	{"https://127.0.0.1./", "not public"},
	{"https://2130706433/", "neither a name nor an address"},
	{"https://0x7f000001/", "neither a name nor an address"},
	{"https://017700000001/", "neither a name nor an address"},
	{"https://0x7f.0.0.1/", "neither a name nor an address"},
	{"https://0177.0.0.1/", "neither a name nor an address"},
	{"https://127.0.0.01/", "neither a name nor an address"},
	{"https://127.1/", "neither a name nor an address"},
	{"https://127.0.1./", "neither a name nor an address"},
	{"https://127.0.0.0x1/", "neither a name nor an address"},
	{"https://9.9.9.256/", "neither a name nor an address"},
	{"https://1.2.3.4.5/", "neither a name nor an address"},
	{"https://shop.example.com../", "neither a name nor an address"},
	{"https://./", "neither a name nor an address"},
	{"https://[::ffff:127.0.0.1]/", "not public"},
	{"https://[::ffff:8.8.8.8]/", "not public"},
	{"https://[0:0:0:0:0:ffff:7f00:1]/", "not public"},
	{"https://[fe80::1%25eth0]/", "not public"},
	{"https://[2620:fe::fe%25eth0]/", "not public"},
	{"https://１２７.0.0.1/", "host that is not valid"},
	{"https://127。0。0。1/", "host that is not valid"},
	{"https://ⓛocalhost/", "host that is not valid"},
	{"https://bücher.example/", "Punycode"},
	{"https://b%C3%BCcher.example/", "Punycode"},
	{"https://shop.example.com,10.0.0.1/", "host that is not valid"},
	{"https://*.example.com/", "host that is not valid"},
	{"https://" + strings.Repeat("a.", 150) + "com/", "host that is not valid"},

	// The host erp.internal, and the port 8443 of 10.0.0.7, are allowed.
	{"http://erp.internal/", ""},
	{"http://ERP.internal.:80/", ""},
	{"https://erp.internal:25/", ""},
	{"http://10.0.0.7:8443/", ""},
	{"https://10.0.0.7:8443/", ""},
	{"https://10.0.0.7/", "not public"},
	{"http://10.0.0.7/", "must begin with https://"},
	{"ftp://erp.internal/", "must begin with https://"},
	{"http://user@erp.internal/", "contains a user"},
	{"https://a.erp.internal/", "private network"},
}

func newURLSender() *webhook.Sender {
	return webhook.NewSender(webhook.SenderOptions{AllowedHosts: []string{"ERP.internal", "10.0.0.7:8443"}})
}

func TestCheckURL(t *testing.T) {
	s := newURLSender()
	for _, c := range urls {
		err := s.CheckURL(c.url)
		wantError(t, err, c.err)
		if t.Failed() {
			t.Fatalf("the URL is %q", c.url)
		}
		if err != nil && (!commerce.IsUserError(err) || strings.Contains(err.Error(), "hidden")) {
			t.Errorf("the error for %s is %v, want a user error without a password", c.url, err)
		}
	}
}

// In any spelling, an accepted URL has no host that is a special address or looks like one.
func FuzzCheckURL(f *testing.F) {
	for _, c := range urls {
		f.Add(c.url)
	}
	for _, address := range refusedAddresses {
		f.Add("https://[" + address + "]/")
		f.Add("https://" + address + ":8443")
	}
	s, guard := newURLSender(), ssrf.New()
	f.Fuzz(func(t *testing.T, text string) {
		if s.CheckURL(text) != nil {
			return
		}
		u, err := url.Parse(text)
		if err != nil || len(text) > 2048 || u.User != nil || u.Fragment != "" || u.Hostname() == "" {
			t.Fatalf("CheckURL accepts %q", text)
		}
		host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
		if host == "erp.internal" || host == "10.0.0.7" && u.Port() == "8443" {
			return
		}
		if u.Scheme != "https" || host == "localhost" {
			t.Errorf("CheckURL accepts %q", text)
		}
		if address, err := netip.ParseAddr(host); err == nil {
			if err := guard.SafeAddr(address); err != nil {
				t.Errorf("CheckURL accepts %q: %v", text, err)
			}
		} else if last := host[strings.LastIndex(host, ".")+1:]; last == "" || strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
			t.Errorf("CheckURL accepts %q, which some programs take for an IPv4 address", text)
		}
	})
}
