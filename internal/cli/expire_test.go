package cli_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/internal/cli"
	"github.com/ordergraph/ordergraph/internal/test/authtest"
)

// A server cancels the orders that have expired. The command expire does so once.
func TestServersCancelExpiredOrders(t *testing.T) {
	data := filepath.Join(t.TempDir(), "shop.db")
	place := func(url string) {
		t.Helper()
		body := postQuery(t, url, `mutation { placeOrder(input: {customerId: "cust_01", items: [{sku: "prod_abc", quantity: 1}]}) { order { expiresAt } userErrors { message } } }`)
		if !strings.Contains(body, `"expiresAt":"2`) {
			t.Fatalf("the order is %s", body)
		}
	}
	clock := authtest.NewClock(time.Unix(1_000_000_000, 0))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	c := startIn(ctx, cli.Environment{AfterFunc: clock.AfterFunc}, "serve -sample -addr 127.0.0.1:0 -data "+data, "ORDERGRAPH_ORDER_EXPIRY=1ms")
	url := "http://" + (<-c.listening).String()
	place(url)
	for !strings.Contains(postQuery(t, url, `{ expiringOrders { nodes { id } } }`), `"nodes":[]`) {
		clock.Advance(30 * time.Second)
	}
	place(url)
	stop()
	<-c.done
	if c.status != 0 || !strings.Contains(c.stderr.String(), `"cancelled":1`) {
		t.Errorf("the server ended with status %d and printed %q", c.status, c.stderr.String())
	}
	for {
		expire := run(t, "expire", "ORDERGRAPH_DATA="+data)
		if expire.status != 0 {
			t.Fatalf("expire ended with status %d: %s", expire.status, expire.stderr.String())
		}
		if strings.Contains(expire.stdout.String(), "cancelled 1 expired orders") {
			return
		}
	}
}
