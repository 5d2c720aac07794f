package dynamo_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// A request that waits until another one has read the layout stops to wait at its own deadline.
func TestWaitForTheLayoutHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := embedded.New()
		name := storetest.TableName()
		storetest.NewTable(t, engine.Client(), dynamo.Options{Table: name})
		held, hold := make(chan struct{}), false
		store, err := dynamo.New(engine.Client(func(o *dynamodb.Options) {
			o.HTTPClient = storetest.HTTPFunc(func(r *http.Request) (*http.Response, error) {
				if hold && strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".GetItem") {
					<-held
				}
				return engine.Do(r)
			})
		}), dynamo.Options{Table: name})
		if err == nil {
			err = store.Ping(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // the layout is too old for a write
		hold = true
		create := func(id string, limit time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			_, err := store.CreateWarehouse(ctx, change.Caller{Name: "ann"}, commerce.Warehouse{ID: commerce.WarehouseID(id), Name: id})
			return err
		}
		reading := make(chan error)
		go func() { reading <- create("w1", time.Minute) }()
		synctest.Wait()
		began := time.Now()
		if err := create("w2", time.Second); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("the second request waited for %s: %v", time.Since(began), err)
		}
		close(held)
		if err := <-reading; err != nil {
			t.Error(err)
		}
	})
}
