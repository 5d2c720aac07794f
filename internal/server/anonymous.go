package server

import (
	"context"
	"net/netip"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/graph/rate"
)

// anonymousNetwork is how many bits of an IPv6 address tell callers apart: one customer of a
// network provider has at least so many addresses (https://www.rfc-editor.org/rfc/rfc6177).
const anonymousNetwork = 64

// anonymous returns the principal of a request without a token. It is named after the address that
// the connection comes from: callers behind one proxy are one principal. An address that cannot be
// read is that of one principal, too.
func anonymous(remote string) commerce.Principal {
	who := commerce.Principal{ID: "anonymous", Name: "anonymous", Role: commerce.RoleAnonymous}
	from, err := netip.ParseAddrPort(remote)
	if err != nil {
		return who
	}
	address := from.Addr().Unmap().WithZone("")
	who.ID += "/" + address.String()
	if network, err := address.Prefix(anonymousNetwork); err == nil && address.Is6() {
		who.ID = "anonymous/" + network.String()
	}
	return who
}

// capacity is the quotas that requests take from while they arrive, are in progress, and while
// clients read the responses.
type capacity struct {
	// working has a slot for each request in progress.
	working *rate.Quota
	// arriving and unread count the bytes of large bodies and of large responses.
	arriving, unread *rate.Quota
}

func newCapacity(limits Limits) capacity {
	return capacity{
		working:  rate.NewQuota(limits.Concurrent, 0),
		arriving: rate.NewQuota(limits.Waiting, free),
		unread:   rate.NewQuota(limits.Waiting, free),
	}
}

// share returns the part of a capacity that anonymous callers have together.
func (c capacity) share() capacity {
	return capacity{working: c.working.Share(rate.AnonymousShare), arriving: c.arriving.Share(rate.AnonymousShare), unread: c.unread.Share(rate.AnonymousShare)}
}

// capacity returns the capacity for the caller of a context.
func (h overHTTP) capacity(ctx context.Context) capacity {
	if callerOf(ctx).Role == commerce.RoleAnonymous {
		return h.forAnonymous
	}
	return h.forAll
}
