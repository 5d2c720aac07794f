package table

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// ClockError reports that a write was rejected because the table's clock differs from DynamoDB's.
// It wraps ErrUnavailable.
type ClockError struct {
	// Ahead is the table's clock minus DynamoDB's. It is negative if the table's clock is behind.
	Ahead time.Duration
}

func (e *ClockError) Error() string {
	return fmt.Sprintf("the server's clock is %s DynamoDB's: nothing is written until they agree", e.Difference())
}

// Unwrap returns ErrUnavailable.
func (e *ClockError) Unwrap() error { return ErrUnavailable }

// Difference describes the difference for a message, such as "25h0m0s ahead of".
func (e *ClockError) Difference() string {
	ahead := e.Ahead.Round(time.Second)
	if ahead < 0 {
		return (-ahead).String() + " behind"
	}
	return ahead.String() + " ahead of"
}

// ClockErr returns a ClockError if the clocks differed when they were last compared.
func (t *Table) ClockErr() error { return clockError(t.watch) }

func clockError(watch *clockWatch) error {
	if ahead := watch.difference(); ahead != 0 {
		return &ClockError{Ahead: ahead}
	}
	return nil
}

// clockLogger returns a function that logs when the clocks begin to differ, and when they agree
// again.
func clockLogger(log *slog.Logger) func(ahead time.Duration) {
	return func(ahead time.Duration) {
		if ahead == 0 {
			log.Info("the server's clock and DynamoDB's agree again")
			return
		}
		log.Error("nothing is written, as the server's clock and DynamoDB's differ", "clock", (&ClockError{ahead}).Difference()+" DynamoDB's")
	}
}

// withClockCheck returns a client whose writes of records fail with a ClockError while the clocks
// differ. TransactWrite makes the same check before it uses the fast path.
func withClockCheck(db *dynamodb.Client, watch *clockWatch) *dynamodb.Client {
	return withCheck(db, "Clock", func(_ context.Context, in any) error {
		switch in.(type) {
		case *dynamodb.TransactWriteItemsInput, *dynamodb.BatchWriteItemInput, *dynamodb.PutItemInput, *dynamodb.UpdateItemInput, *dynamodb.DeleteItemInput:
			return clockError(watch)
		}
		return nil
	})
}
