package table

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// ClockError means that a write was rejected because the local clock differs from DynamoDB's clock
// by more than MaxClockDifference. It wraps ErrUnavailable.
type ClockError struct {
	// Ahead is the time of the local clock minus the time of DynamoDB's clock. It is negative if the
	// local clock is behind.
	Ahead time.Duration
}

func (e *ClockError) Error() string {
	return fmt.Sprintf("the server's clock is %s DynamoDB's clock; writes are rejected until the clocks agree", e.DifferenceText())
}

// Unwrap returns ErrUnavailable.
func (e *ClockError) Unwrap() error { return ErrUnavailable }

// DifferenceText returns a text such as "25h0m0s ahead of" or "25h0m0s behind". The caller appends
// the words "DynamoDB's clock".
func (e *ClockError) DifferenceText() string {
	ahead := e.Ahead.Round(time.Second)
	if ahead < 0 {
		return (-ahead).String() + " behind"
	}
	return ahead.String() + " ahead of"
}

// ClockErr returns a ClockError if the last comparison found a difference of more than
// MaxClockDifference between the local clock and DynamoDB's clock. Otherwise, it returns nil.
func (t *Table) ClockErr() error {
	if ahead := t.watch.difference(); ahead != 0 {
		return &ClockError{Ahead: ahead}
	}
	return nil
}

// clockLogger returns a function that logs a message when the local clock and DynamoDB's clock
// start to differ, and another message when they agree again.
func clockLogger(log *slog.Logger) func(ahead time.Duration) {
	return func(ahead time.Duration) {
		if ahead == 0 {
			log.Info("the server's clock and DynamoDB's clock agree again")
			return
		}
		log.Error("writes are rejected because the server's clock and DynamoDB's clock differ", "clock", (&ClockError{ahead}).DifferenceText()+" DynamoDB's")
	}
}

// writeErr returns the reason why writes are rejected: a ClockError, or an error that wraps
// ErrLayoutUnknown. If writes are allowed, it returns nil.
func (t *Table) writeErr(ctx context.Context) error {
	if err := t.ClockErr(); err != nil {
		return err
	}
	return t.CheckLayout(ctx)
}

// withWriteChecks returns a client that rejects writes while err returns an error. The fast path sends
// transactions without this client, so transactWrite makes the same check.
func withWriteChecks(db *dynamodb.Client, err func(context.Context) error) *dynamodb.Client {
	return withInputCheck(db, "Writes", func(ctx context.Context, in any) error {
		switch in.(type) {
		case *dynamodb.TransactWriteItemsInput, *dynamodb.BatchWriteItemInput, *dynamodb.PutItemInput, *dynamodb.UpdateItemInput, *dynamodb.DeleteItemInput:
			return err(ctx)
		}
		return nil
	})
}
