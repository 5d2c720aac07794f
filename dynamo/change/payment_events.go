package change

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// UnmatchedError is the error for a payment that is in the list of unmatched payments.
type UnmatchedError struct {
	// Reason is the user error why the payment could not be recorded.
	Reason error
	// FirstSeenAt is the time when the payment was added to the list.
	FirstSeenAt time.Time
}

// Error returns the text of the user error.
func (e UnmatchedError) Error() string { return e.Reason.Error() }

// Unwrap returns the user error.
func (e UnmatchedError) Unwrap() error { return e.Reason }

// ReceivePayment records a payment that a provider reports. If confirmPaid is true and the pending
// order is paid then, ReceivePayment confirms it in a second transaction. If the payment is already
// recorded, ReceivePayment only confirms the order, so repetitions complete what an earlier call
// has begun.
//
// If the payment cannot be recorded, it is added to the unmatched payments, and ReceivePayment
// returns an UnmatchedError with the user error. The user error is commerce.NotFound if the order
// does not exist, or otherwise an error of RecordPayment. Other errors:
// model.DerivationUnavailable, and errors from mutate.
func (m Mutations) ReceivePayment(ctx context.Context, caller Caller, e commerce.PaymentEvent, confirmPaid bool) error {
	order, err := m.recordEvent(ctx, caller, e)
	if commerce.IsUserError(err) {
		unmatched, added, failed := m.addUnmatched(ctx, caller, e, err)
		if failed != nil {
			return failed
		}
		if added {
			// If another server has read the table before this addition, and records the payment after
			// it, the payment remains in the list. Then its order exists now.
			order, err = m.recordEvent(ctx, caller, e)
		}
		if unmatched != nil && commerce.IsUserError(err) {
			return UnmatchedError{err, unmatched.FirstSeenAt}
		}
	}
	confirmPaid = confirmPaid && e.Of == commerce.PaymentReferences{} // otherwise, the money was paid before
	if err == nil && confirmPaid && order != nil && order.Status == commerce.Pending && order.PaymentState() == commerce.StatePaid {
		_, err = m.ChangeOrderStatus(ctx, caller, commerce.OrderStatusChange{OrderID: order.ID, To: commerce.Confirmed})
		if commerce.IsUserError(err) {
			return nil // it has been confirmed or cancelled meanwhile
		}
	}
	return err
}

// recordEvent records a payment that a provider reports, and returns its order. It returns nil if
// the event is about the release of an authorized amount.
//
// Errors: errors from orderOfPayment, RecordPayment and mutate.
func (m Mutations) recordEvent(ctx context.Context, caller Caller, e commerce.PaymentEvent) (order *commerce.Order, err error) {
	cmd := commerce.PaymentRecord{Kind: e.Kind, Amount: e.Amount, Provider: e.Provider, Reference: e.Reference}
	_, err = mutate(ctx, m.table, &model.WriteRecordPayment, caller, cmd, m.table.DecodePayment, func(ctx context.Context, c *change) (p *commerce.Payment, err error) {
		released := false
		if cmd.OrderID, released, err = c.orderOfPayment(ctx, e); err != nil || released {
			return nil, err
		}
		p, order, err = c.recordPayment(ctx, cmd)
		return p, err
	})
	return order, err
}

// orderOfPayment returns the order to which an event belongs. released reports whether the event is
// about the release of an authorized amount, which is already recorded.
//
// Errors: commerce.NotFound, commerce.InvalidInput, model.ErrCorrupt, errors from table.WrapError.
func (c *change) orderOfPayment(ctx context.Context, e commerce.PaymentEvent) (id commerce.OrderID, released bool, err error) {
	if e.OrderID != "" {
		if id, err = commerce.ParseOrderID(e.OrderID); err != nil {
			return "", false, commerce.NewNotFound("order", e.OrderID, "orderId")
		}
		return id, false, nil
	}
	claimOf := func(reference string) model.Keys {
		if reference == "" {
			return model.Keys{}
		}
		claim, _ := keysOfReference(e.Provider + ":" + reference)
		return claim
	}
	capture, others := claimOf(e.Of.Capture), []model.Keys{claimOf(e.Of.Authorization), claimOf(e.Of.Void)}
	ks := []model.Keys{capture}
	for _, k := range others {
		if k != (model.Keys{}) {
			ks = append(ks, k)
		}
	}
	if capture == (model.Keys{}) {
		return "", false, commerce.NewInvalidInput(commerce.FieldPath("orderId"), "is missing: let the provider send the ID of the order")
	}
	if _, err := c.read(ctx, ks...); err != nil {
		return "", false, err
	}
	captured, exists := c.knownRecord(capture)
	switch {
	case !exists && c.exists(others[1]):
		return "", true, nil
	case !exists:
		return "", false, commerce.NewNotFound("payment", e.Of.Capture, "reference")
	case c.exists(others[0]):
		if err := c.checkCapturedWhole(ctx, c.known[others[0]], captured); err != nil {
			return "", false, err
		}
	}
	return commerce.OrderID(model.TextOf(captured, "orderId")), false, nil
}

// checkCapturedWhole returns commerce.InvalidInput if an authorization and a capture have different
// amounts. The parameters are their claims. It also returns model.ErrCorrupt and errors from
// table.WrapError.
func (c *change) checkCapturedWhole(ctx context.Context, authorization, capture model.Record) error {
	claim := &model.EntityPaymentClaim
	records, err := c.read(ctx, claim.ClaimantKey(authorization), claim.ClaimantKey(capture))
	if err != nil {
		return err
	}
	var amounts [2]commerce.Money
	for i, r := range records {
		p, err := c.table.DecodePayment(model.Reader{Record: r})
		if err != nil {
			return err
		}
		amounts[i] = p.Amount
	}
	if !amounts[0].Equal(amounts[1]) {
		return commerce.NewInvalidInput(commerce.FieldPath("orderId"), "is missing, and of %s %s only %s was captured, so this may be the release of the rest: if it is a refund, record it with recordPayment", amounts[0].Decimal(), amounts[0].Currency, amounts[1].Decimal())
	}
	return nil
}

// DismissUnmatchedPayment removes an unmatched payment, and returns it.
//
// Errors: commerce.NotFound, and errors from mutate.
func (m Mutations) DismissUnmatchedPayment(ctx context.Context, caller Caller, cmd commerce.UnmatchedPaymentDismissal) (*commerce.UnmatchedPayment, error) {
	return mutate(ctx, m.table, &model.WriteDismissUnmatchedPayment, caller, cmd, m.table.DecodeUnmatchedPayment, func(ctx context.Context, c *change) (*commerce.UnmatchedPayment, error) {
		_, k := keysOfReference(cmd.Provider + ":" + cmd.Reference)
		u, record, err := readRecordToChange(ctx, c, c.table.DecodeUnmatchedPayment, "unmatched payment", cmd.Reference, "reference", nil, k)
		if err == nil {
			c.remove(record, table.RecordExists)
		}
		return u, err
	})
}

// addUnmatched stores an event that could not be recorded, unless the payment has been recorded
// meanwhile. If an event with the same reference is already stored, it is replaced. added reports
// whether none was stored before. If the payment is recorded, unmatched is nil.
//
// Errors: errors from mutate.
func (m Mutations) addUnmatched(ctx context.Context, caller Caller, e commerce.PaymentEvent, reason error) (unmatched *commerce.UnmatchedPayment, added bool, err error) {
	u := commerce.UnmatchedPayment{ProviderReference: e.Provider + ":" + e.Reference, Kind: e.Kind, Amount: e.Amount, GivenOrderID: e.OrderID, Reason: reason.Error()}
	if len(u.Reason) > commerce.MaxUnmatchedReason {
		u.Reason = strings.ToValidUTF8(u.Reason[:commerce.MaxUnmatchedReason], "")
	}
	_, isOther := errors.AsType[commerce.AlreadyExists](reason)
	unmatched, err = mutate(ctx, m.table, &model.WriteRecordPayment, caller, e, m.table.DecodeUnmatchedPayment, func(ctx context.Context, c *change) (*commerce.UnmatchedPayment, error) {
		claim, k := keysOfReference(u.ProviderReference)
		records, err := c.read(ctx, k, claim)
		if added = false; err != nil || records[1] != nil && !isOther {
			return nil, err
		}
		u.FirstSeenAt = c.table.Now()
		if added = records[0] == nil; added {
			c.createWithCopies(&u)
		} else {
			before, err := c.table.DecodeUnmatchedPayment(model.Reader{Record: records[0]})
			if err != nil {
				return nil, err
			}
			if u.FirstSeenAt = before.FirstSeenAt; u == *before {
				return &u, nil
			}
			c.updateWithEdges(&c.KeyBuilder, records[0], before, &u, "reason")
		}
		if !isOther {
			c.addConditionCheck(claim, table.RecordNotExists)
		}
		return &u, nil
	})
	return unmatched, added, err
}
