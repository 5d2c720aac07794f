package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/feed"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/auth"
	"github.com/ordergraph/ordergraph/internal/sampledata"
	"github.com/ordergraph/ordergraph/internal/server"
	"github.com/ordergraph/ordergraph/internal/test/authtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// revocable is a live server that requires tokens. The test can delete customers from its table.
type revocable struct {
	*liveServer
	g     *authenticatedServer
	db    *dynamodb.Client
	table string
	// lookUps is the number of reads of a customer for a token. down makes them fail.
	lookUps atomic.Int64
	down    atomic.Bool
}

func newRevocable(t *testing.T, db *dynamodb.Client) *revocable {
	t.Helper()
	r := &revocable{liveServer: &liveServer{t: t}, db: db, table: storetest.TableName()}
	dataset, err := sampledata.Sample()
	if err != nil {
		t.Fatal(err)
	}
	r.store = storetest.NewTable(t, db, dynamo.Options{Table: r.table})
	storetest.LoadDataset(t, r.store, dataset)
	r.feed = storetest.OpenFeed(t, db, r.store, feed.Options{})
	opts := server.Options{Limits: server.Limits{KeepAlive: time.Hour}} // no pings between the messages
	opts.Graph.Feed = r.feed
	r.g = newAuthenticatedServer(t, r.store, opts, func(o *auth.Options) {
		exists := o.CustomerExists
		o.CustomerExists = func(ctx context.Context, id commerce.CustomerID) (bool, error) {
			if r.lookUps.Add(1); r.down.Load() {
				return false, errors.New("the table is down")
			}
			return exists(ctx, id)
		}
	})
	r.addr, r.log = listenTCP(t, r.g, opts), r.g.log
	return r
}

// delete deletes a customer's record directly in the table.
func (r *revocable) delete(id string) {
	r.t.Helper()
	if _, err := r.db.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{TableName: &r.table, Key: map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "CUSTOMER#" + id}, "sk": &types.AttributeValueMemberS{Value: "#METADATA"},
	}}); err != nil {
		r.t.Fatal(err)
	}
}

// connectedClient has a socket and an event stream, both with a subscription and the same token.
type connectedClient struct {
	socket *peer
	stream *events
}

func (r *revocable) connect(token, query string) connectedClient {
	r.t.Helper()
	before := r.feed.Subscriptions()
	c := connectedClient{r.as(token), r.request(http.MethodPost, r.url(), post(query), "Authorization", "Bearer "+token)}
	if c.stream.response.StatusCode != http.StatusOK {
		r.t.Fatalf("status %d", c.stream.response.StatusCode)
	}
	c.socket.subscribe("a", query)
	r.waitForSubscriptions(before + 2)
	return c
}

// checkConnected checks that both connections deliver a change, and that the socket accepts another
// operation.
func (r *revocable) checkConnected(c connectedClient, change func()) {
	r.t.Helper()
	change()
	c.socket.want("next", "a")
	if name, data, err := c.stream.next(); name != "next" || err != nil {
		r.t.Errorf("the stream returned %q %q, %v, want the next event", name, data, err)
	}
	c.socket.subscribe("b", `{ __typename }`)
	c.socket.want("next", "b")
	c.socket.want("complete", "b")
}

// checkDisconnected checks that the socket is closed with 4403, that the stream breaks off, and
// that the token is refused for new connections.
func (r *revocable) checkDisconnected(c connectedClient, token string) {
	r.t.Helper()
	c.socket.closed(4403)
	if name, _, err := c.stream.next(); !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) || name != "" {
		r.t.Errorf("the stream returned %q, %v, want it closed", name, err)
	}
	w := r.dial()
	w.text(fmt.Sprintf(`{"type":"connection_init","payload":{"Authorization":"Bearer %s"}}`, token))
	w.closed(4403)
	r.request(http.MethodPost, r.url(), post(`{ __typename }`), "Authorization", "Bearer "+token).refused(r.t, http.StatusUnauthorized, "UNAUTHENTICATED")
}

const followAll = `subscription { orderStatusChanged { id } }`

// If the issuer withdraws a key, the connections of its tokens end within a minute. Others stay
// open.
func TestARevokedKeyEndsConnections(t *testing.T) {
	r := newRevocable(t, embedded.New().Client())
	next := authtest.NewKey(t, "the-next-key", "EdDSA")
	r.g.publish(t, r.g.key, next)
	r.g.clock.Advance(time.Minute)
	claims := authtest.Claims(r.g.now(), authtest.Object{"role": "STAFF"})
	old, renewed := r.g.key.Token(t, claims, nil), next.Token(t, claims, nil)
	revoked, unaffected := r.connect(old, followAll), r.connect(renewed, followAll)
	r.g.publish(t, next, authtest.NewKey(t, "another-key", "ES256"))
	r.g.clock.Advance(time.Minute)
	r.checkDisconnected(revoked, old)
	r.checkConnected(unaffected, func() { r.place() })

	// Another key with the same ID does not verify the token.
	r.g.publish(t, authtest.NewKey(t, next.ID, next.Algorithm))
	r.g.clock.Advance(time.Minute)
	r.checkDisconnected(unaffected, renewed)
	r.waitForNoSubscriptions()

	// While the issuer is down, the last known keys are valid.
	key := authtest.NewKey(t, "the-last-key", "ES256")
	r.g.publish(t, key)
	r.g.clock.Advance(time.Minute)
	unaffected = r.connect(key.Token(t, authtest.Claims(r.g.now(), authtest.Object{"role": "STAFF"}), nil), followAll)
	r.g.jwks.Store(nil)
	r.g.clock.Advance(10 * time.Minute)
	r.checkConnected(unaffected, func() { r.place() })
}

// If a customer's record is deleted, the customer's connections end within a minute, and no others.
// All connections of a customer share one read in half a minute. If the table cannot be read, no
// connection ends.
func TestADeletedCustomerEndsConnections(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := newRevocable(t, db)
		token := func(claims authtest.Object) string {
			claims["exp"] = r.g.now().Add(24 * time.Hour).Unix()
			return r.g.token(t, claims)
		}
		own := func(id string) string {
			return fmt.Sprintf(`subscription { customerOrders(customerId: %q) { id } }`, id)
		}
		deletedToken, otherToken, staffToken := token(customerClaims("cust_01")), token(customerClaims("cust_001")), token(authtest.Object{"role": "STAFF", "customer_id": "cust_01"})
		var deleted []connectedClient
		for range 3 {
			deleted = append(deleted, r.connect(deletedToken, own("cust_01")))
		}
		unaffected, staff := r.connect(otherToken, own("cust_001")), r.connect(staffToken, followAll)
		r.g.clock.Advance(time.Minute)
		r.lookUps.Store(0)
		r.g.clock.Advance(10 * time.Minute)
		if n := r.lookUps.Load(); n < 2*10 || n > 2*20 {
			t.Errorf("in ten minutes the eight connections of two customers made %d look-ups, want at most one in half a minute for each customer", n)
		}
		r.down.Store(true)
		r.g.clock.Advance(10 * time.Minute)
		r.checkConnected(deleted[0], func() { r.place() })
		for _, c := range deleted[1:] {
			c.socket.want("next", "a")
		}
		staff.socket.want("next", "a")
		r.down.Store(false)
		r.g.clock.Advance(time.Minute)

		r.delete("cust_01")
		r.g.clock.Advance(time.Minute)
		for _, c := range deleted {
			_, _, _ = c.stream.next() // events from before the deletion
			r.checkDisconnected(c, deletedToken)
		}
		r.waitForSubscriptions(4)
		staff.socket.subscribe("b", `{ __typename }`)
		staff.socket.want("next", "b")
		r.checkConnected(unaffected, func() { r.placeFor("cust_001") })
		r.lookUps.Store(0)
		r.g.clock.Advance(time.Minute)
		if n := r.lookUps.Load(); n > 2 {
			t.Errorf("in a minute one connected customer is looked up %d times, want 2 at most: connections that have ended are still checked", n)
		}
	})
}
