package check

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// readReservation adds the units of the orders that do not embed their items. If the result differs
// from the record of the customer's last event, it reads this record again. Every mutation of an
// order changes the record, so the result is exact if the record is unchanged.
//
// Errors are wrapped by table.WrapError.
func (v *customerVerifier) readReservation(ctx context.Context, c *check) error {
	v.reservationUnsettled = false
	if !v.needsReservation(c) {
		v.unlisted = nil
		return nil
	}
	for _, o := range v.unlisted {
		p := &model.OrderItems.AccessPattern
		partition, err := p.PK.Build(string(o.ID))
		if err != nil {
			v.hasUnreadableOrder = true
			continue
		}
		v.sums.Subtract(o)
		err = c.client.query(ctx, p, partition, string(p.SK), func(out *dynamodb.QueryOutput) error {
			for _, rec := range out.Items {
				at := model.Reader{Record: rec}
				o.Items = append(o.Items, commerce.LineItem{Quantity: at.Number("qty")})
			}
			return nil
		})
		if err != nil {
			return err
		}
		v.sums.Add(o)
	}
	v.unlisted = nil
	if v.storedReservation() == v.reservation() && v.reservationCounted() {
		return nil
	}
	counted := v.reservationCounted()
	var err error
	v.lastEvent, err = c.client.getConsistent(ctx, model.KeyOf(v.lastEventBefore))
	v.reservationUnsettled = counted && !model.EqualRecords(v.lastEventBefore, v.lastEvent)
	return err
}

// reservation returns what the customer's open orders reserve.
func (v *customerVerifier) reservation() (r commerce.Reservation) {
	for _, d := range v.sums.Of(&model.EntityLastEvent) {
		r.OpenOrders, r.Units = d.Int(model.AttrOpenOrders), d.Int(model.AttrReservedUnits)
	}
	return r
}

// storedReservation returns the sums in the record of the customer's last event.
func (v *customerVerifier) storedReservation() commerce.Reservation {
	r := model.Reader{Record: v.lastEvent}
	return commerce.Reservation{OpenOrders: r.Number(model.AttrOpenOrders), Units: r.Number(model.AttrReservedUnits)}
}

// reservationCounted reports whether the record of the customer's last event states that its sums
// include all orders.
func (v *customerVerifier) reservationCounted() bool {
	return (&model.Reader{Record: v.lastEvent}).Flag(model.AttrReservationsCounted)
}

// needsReservation reports whether the check needs the sums of the orders. If the stored sums do not
// include all orders, only a repair counts them. The last event of a guest has no sums.
func (v *customerVerifier) needsReservation(c *check) bool {
	return v.lastEvent != nil && !v.id.IsGuest() && (v.reservationCounted() || c.opts.Repair)
}

// expectedReservation returns the sums that the record of the customer's last event should have.
// Sums that do not include all orders are no inconsistency, so a repair sets them without a finding:
// for such a record, reported is false.
func (v *customerVerifier) expectedReservation(c *check) (sums model.Record, reported bool) {
	// The sums are valid for the record as it was before the orders were read. A fix requires that the
	// record still has all its attributes.
	scanning, counted := v.lastEventBefore == nil, v.reservationCounted()
	if !v.needsReservation(c) || v.cannotAddUp(c) || scanning && !counted || !scanning && !model.EqualRecords(v.lastEventBefore, v.lastEvent) {
		return nil, false
	}
	derived := v.reservation()
	return model.Record{
		model.AttrOpenOrders: model.Num(derived.OpenOrders), model.AttrReservedUnits: model.Num(derived.Units),
		model.AttrReservationsCounted: model.Bool(true),
	}, counted
}
