package dynamo_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// putWebhook stores a webhook with the given ID.
func putWebhook(t testing.TB, r storetest.RawTable, id commerce.WebhookID) commerce.Webhook {
	t.Helper()
	at := r.Store.Now()
	w := commerce.Webhook{
		ID: id, URL: "https://example.com/hook", Topics: []commerce.EventType{commerce.EventPlaced, commerce.EventShipped}, Statuses: []commerce.Status{commerce.Shipped},
		Secrets: []string{"new", "old"}, SecretRotatedAt: &at, Paused: true, From: "01HVMK3P2Q0000000000000001", Restarts: 1, Version: 2, CreatedAt: at, UpdatedAt: at, CreatedBy: "ann",
	}
	r.Put(model.EncodeWithEdges(&model.KeyBuilder{}, &w)[0])
	return w
}

// All records of webhooks are read as they were written. A state is written only by a server that
// knows the stored one, and no record is added to a webhook that does not exist.
func TestRecordsOfWebhooks(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 3), dynamo.Options{})
		ctx, s := t.Context(), r.Store
		id := commerce.WebhookID("01HVMK3P2Q0000000000000009")
		state := &commerce.WebhookState{WebhookID: id, Owner: "a", Sequence: 1}
		failure := &commerce.WebhookFailure{WebhookID: id, OrderID: "01HVMK3P2Q0000000000000002", EventID: "01HVMK3P2Q0000000000000003", Attempts: 1, RetryAt: s.Now(), Since: s.Now(), Error: "status 500"}
		changed := func(err error) {
			t.Helper()
			if !errors.Is(err, dynamo.ErrWebhookChanged) {
				t.Errorf("got %v, want ErrWebhookChanged", err)
			}
		}
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		changed(s.SaveWebhookState(ctx, state, 0))
		changed(s.SaveWebhookFailure(ctx, failure, "a"))

		w := putWebhook(t, r, id)
		all, err := s.Webhooks(ctx)
		must(err)
		if len(all) != 1 || !reflect.DeepEqual(*all[0], w) {
			t.Errorf("the webhooks are %+v, want %+v", all, w)
		}
		must(s.SaveWebhookState(ctx, state, 0))
		changed(s.SaveWebhookState(ctx, state, 0))
		changed(s.SaveWebhookState(ctx, state, 2))
		at := s.Now()
		next := &commerce.WebhookState{
			WebhookID: id, Owner: "b", Sequence: 2, Wanted: "c", Cursor: "01HVMK3P2Q0000000000000004", WebhookVersion: 2, Restarts: 1, Failures: 3, RetryAt: &at, DisabledReason: "gone",
			LastError: "status 410", LastErrorAt: &at, LastSuccessAt: &at, Pending: 5, PendingSince: &at,
		}
		must(s.SaveWebhookState(ctx, next, 1))
		changed(s.SaveWebhookState(ctx, state, 1))
		states, err := s.WebhookStates(ctx, []commerce.WebhookID{id, "01HVMK3P2Q0000000000000008"})
		must(err)
		if len(states) != 1 || !reflect.DeepEqual(states[id], next) {
			t.Errorf("the states are %+v, want %+v", states, next)
		}

		must(s.SaveWebhookFailure(ctx, failure, "b"))
		failure.Attempts = 2
		must(s.SaveWebhookFailure(ctx, failure, "b"))
		failures, err := s.WebhookFailures(ctx, id)
		must(err)
		if len(failures) != 1 || !reflect.DeepEqual(failures[0], failure) {
			t.Errorf("the failures are %+v, want %+v", failures, failure)
		}
		r.CheckClean()
		changed(s.SaveWebhookFailure(ctx, failure, "a"))
		changed(s.DeleteWebhookFailure(ctx, id, failure.OrderID, "a"))
		for range 2 {
			must(s.DeleteWebhookFailure(ctx, id, failure.OrderID, "b"))
		}
		if failures, err = s.WebhookFailures(ctx, id); err != nil || len(failures) > 0 {
			t.Errorf("after the deletion, the failures are %+v, %v", failures, err)
		}
	})
}
