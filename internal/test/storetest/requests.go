package storetest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/ordergraph/ordergraph/dynamo"
)

// HTTPFunc is a function that implements the SDK's interface for HTTP clients.
type HTTPFunc func(*http.Request) (*http.Response, error)

// Do calls the function.
func (do HTTPFunc) Do(r *http.Request) (*http.Response, error) { return do(r) }

// WithRequestHook returns a client of db's engine that calls hook with the SDK's input struct
// before each request. If hook returns an error, the request fails without being sent.
func WithRequestHook(db *dynamodb.Client, hook func(ctx context.Context, in any) error) *dynamodb.Client {
	return dynamodb.New(db.Options(), func(o *dynamodb.Options) {
		o.APIOptions = append(slices.Clone(o.APIOptions), func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("see", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
				if err := hook(ctx, in.Parameters); err != nil {
					return middleware.InitializeOutput{}, middleware.Metadata{}, err
				}
				return next.HandleInitialize(ctx, in)
			}), middleware.Before)
		})
	})
}

// WithScanLimit returns a client of db's engine that reads at most the given number of records per
// page of a Scan. Small pages let a test with few records read several pages.
func WithScanLimit(db *dynamodb.Client, records int32) *dynamodb.Client {
	return WithRequestHook(db, func(_ context.Context, in any) error {
		if scan, ok := in.(*dynamodb.ScanInput); ok {
			scan.Limit = aws.Int32(records)
		}
		return nil
	})
}

// WithCountLimit returns a client of db's engine that reads at most the given number of records per
// page of a Query. It changes only a Query that counts records or has no limit. Small pages let a
// test with few records read several pages.
func WithCountLimit(db *dynamodb.Client, records int32) *dynamodb.Client {
	return WithRequestHook(db, func(_ context.Context, in any) error {
		if query, ok := in.(*dynamodb.QueryInput); ok && (query.Select == types.SelectCount || query.Limit == nil) {
			query.Limit = aws.Int32(records)
		}
		return nil
	})
}

// StoreWithClient returns a new Store for the table of the given Store. The new Store sends its
// requests with the client db. It follows the layout of the table only after a call of its method Ping.
func StoreWithClient(t testing.TB, store *dynamo.Store, db *dynamodb.Client, opts dynamo.Options) *dynamo.Store {
	t.Helper()
	opts.Table = StoreTableName(t, store)
	s, err := dynamo.New(db, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// StoreTableName returns the name of a store's table.
func StoreTableName(t testing.TB, store *dynamo.Store) string {
	t.Helper()
	id, err := store.TableID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	name, _, _ := strings.Cut(id, " ")
	return name
}

// WithHTTPHook returns a copy of r with a new Store. The Store calls the hook (the parameter
// before) for each request. The hook's parameter earlier is the number of earlier requests with the
// same DynamoDB operation. If the hook returns a response, the request is not sent.
func (r RawTable) WithHTTPHook(before func(operation string, earlier int, body string) *http.Response) RawTable {
	r.T.Helper()
	next := r.DB.Options().HTTPClient
	if next == nil {
		next = http.DefaultClient
	}
	var mu sync.Mutex
	requests := map[string]int{}
	client := dynamodb.New(r.DB.Options(), func(opts *dynamodb.Options) {
		opts.Retryer = aws.NopRetryer{}
		opts.HTTPClient = HTTPFunc(func(request *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(request.Body)
			if err != nil {
				return nil, err
			}
			request.Body = io.NopCloser(bytes.NewReader(body))
			_, operation, _ := strings.Cut(request.Header.Get("X-Amz-Target"), ".")
			mu.Lock()
			earlier := requests[operation]
			requests[operation]++
			response := before(operation, earlier, string(body))
			mu.Unlock()
			if response != nil {
				return response, nil
			}
			return next.Do(request)
		})
	})
	store, err := dynamo.New(client, dynamo.Options{Table: r.Name})
	if err != nil {
		r.T.Fatal(err)
	}
	r.Store = store
	return r
}
