package change

import (
	"context"
	"fmt"
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// RecordPayment adds a payment to an order, which can have any status. If the provider's ID of the payment
// was already recorded with the same values, RecordPayment returns the earlier payment.
//
// Errors: commerce.NotFound, commerce.InvalidInput, commerce.AlreadyExists if the provider's ID was recorded
// with other values, model.DerivationUnavailable, and errors from mutate.
func (m Mutations) RecordPayment(ctx context.Context, caller Caller, cmd commerce.PaymentRecord) (*commerce.Payment, error) {
	if err := cmd.CheckReturn(); err != nil {
		return nil, err
	}
	return mutate(ctx, m.table, &model.WriteRecordPayment, caller, cmd, m.table.DecodePayment, func(ctx context.Context, c *change) (*commerce.Payment, error) {
		p, _, err := c.recordPayment(ctx, cmd)
		return p, err
	})
}

// recordPayment adds the writes of RecordPayment to the transaction. It also returns the order
// after the change, and the errors of RecordPayment.
func (c *change) recordPayment(ctx context.Context, cmd commerce.PaymentRecord) (*commerce.Payment, *commerce.Order, error) {
	for _, name := range []string{model.EntityPaymentDue.Name, model.OrderAdjustments} {
		if err := c.Derivations.CheckReadable(name); err != nil {
			return nil, nil, err
		}
	}
	p := &commerce.Payment{OrderID: cmd.OrderID, Kind: cmd.Kind, Amount: cmd.Amount, ProviderReference: cmd.Provider + ":" + cmd.Reference, ReturnID: cmd.ReturnID, Reason: cmd.Reason, Actor: c.caller.Name}
	claim, unmatched := keysOfReference(p.ProviderReference)
	ks := []model.Keys{claim, unmatched}
	if cmd.ReturnID != "" {
		if err := c.Derivations.CheckReadable(model.OrderReturnsFeature); err != nil {
			return nil, nil, err
		}
		ks = append(ks, model.KeysOfReturn(&c.KeyBuilder, model.ReturnKey{Order: cmd.OrderID, ID: cmd.ReturnID}))
	}
	before, current, err := c.readOrder(ctx, cmd.OrderID, nil, ks...)
	if err != nil {
		return nil, nil, err
	}
	if claimed, exists := c.knownRecord(claim); exists {
		recorded, err := c.recordedPayment(ctx, p, claimed)
		if err == nil {
			err = c.removeUnmatched(unmatched, p)
		}
		return recorded, before, err
	}
	if p.Amount.Currency != before.Total.Currency {
		return nil, nil, commerce.NewInvalidInput(commerce.FieldPath("amount", "currencyCode"), "is %s, but the order is in %s: use the currency of the order", p.Amount.Currency, before.Total.Currency)
	}
	after := *before
	if after.PaymentTotals, err = derive.PaymentTotals(before.PaymentTotals, before.Total.Currency, *p); err == nil {
		err = after.PaymentTotals.Check()
	}
	if err != nil {
		return nil, nil, err
	}
	e := commerce.Event{Type: commerce.EventPaymentRecorded, NoteCustomerID: before.CustomerID,
		Note: fmt.Sprintf("%s: %s %s", strings.ToUpper(string(p.Kind)), p.Amount.Decimal(), p.Amount.Currency)}
	if err := c.updateOrder(ctx, current, before, &after, e, nil); err != nil {
		return nil, nil, err
	}
	p.At = after.UpdatedAt
	if cmd.ReturnID != "" {
		if err := c.refundReturn(ctx, ks[2], *p); err != nil {
			return nil, nil, err
		}
	}
	id, err := c.table.NewULID(p.At)
	if err != nil {
		return nil, nil, err
	}
	p.ID = commerce.PaymentID(id)
	c.createWithCopies(p)
	if stored, exists := c.knownRecord(unmatched); exists {
		c.remove(stored, nil)
	}
	return p, &after, nil
}

// keysOfReference returns the keys of the claim of a provider's reference, and of the unmatched
// payment with this reference.
func keysOfReference(providerReference string) (claim, unmatched model.Keys) {
	values := map[string]string{"providerReference": providerReference}
	return model.EntityPaymentClaim.KeyFromValues(values), model.EntityUnmatchedPayment.KeyFromValues(values)
}

// removeUnmatched removes the record with the key k if it is about the payment p, which was
// recorded before.
//
// Errors: model.ErrCorrupt.
func (c *change) removeUnmatched(k model.Keys, p *commerce.Payment) error {
	stored, exists := c.knownRecord(k)
	if !exists {
		return nil
	}
	u, err := c.table.DecodeUnmatchedPayment(model.Reader{Record: stored})
	if err == nil && u.Kind == p.Kind && u.Amount.Equal(p.Amount) {
		c.remove(stored, nil)
	}
	return err
}

// refundReturn adds the refund p to the return with the key k.
//
// Errors: commerce.NotFound, commerce.InvalidInput, model.ErrCorrupt, errors from table.WrapError.
func (c *change) refundReturn(ctx context.Context, k model.Keys, p commerce.Payment) error {
	r, record, err := readRecordToChange(ctx, c, c.table.DecodeReturn, "return", p.ReturnID, "returnId", nil, k)
	if err != nil {
		return err
	}
	refunded, err := r.WithRefund(p.Amount, p.Reason != "")
	if err != nil {
		return err
	}
	refunded.UpdatedAt = p.At
	c.updateWithEdges(&c.KeyBuilder, record, r, &refunded, "updatedAt")
	return nil
}

// recordedPayment returns the payment that a claim names. If it differs from p, recordedPayment returns
// commerce.AlreadyExists. It also returns model.ErrCorrupt, and errors from table.WrapError.
func (c *change) recordedPayment(ctx context.Context, p *commerce.Payment, claim model.Record) (*commerce.Payment, error) {
	refused := commerce.NewPaymentExists(p.Provider(), p.Reference())
	if model.TextOf(claim, "orderId") != string(p.OrderID) {
		return nil, refused
	}
	k := model.EntityPaymentClaim.ClaimantKey(claim)
	records, err := c.read(ctx, k)
	if err != nil {
		return nil, err
	}
	if records[0] == nil {
		return nil, fmt.Errorf("%w: payment %s does not exist, but its ID at the provider is claimed", model.ErrCorrupt, k.Text())
	}
	recorded, err := c.table.DecodePayment(model.Reader{Record: records[0]})
	if err == nil && (recorded.Kind != p.Kind || !recorded.Amount.Equal(p.Amount) || recorded.ReturnID != p.ReturnID) {
		return nil, refused
	}
	return recorded, err
}
