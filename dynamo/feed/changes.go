package feed

import (
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// changes are changes of records that the source reports at once: each record before and after its
// change, nil for none.
type changes struct {
	feed          *Feed
	before, after []map[string]types.AttributeValue
	// images are the order records among them by order ID, filled on first use. orders are the
	// decoded orders by order ID and time of update.
	images map[string][]model.Record
	orders map[string]map[int64]*commerce.Order
}

// deliver turns changes of records into changes of orders and delivers them. It decodes only
// records that have a subscription. The caller holds the feed's lock.
//
//   - The record of a customer's last event is delivered to subscriptions to the customer and to the
//     event's order. It is written with every event of the customer's orders, so its changes in the
//     stream are these events, in the order of the commits.
//   - A new event in the timeline of an order is delivered to subscriptions to the status that the
//     order changed to. An event by other software has no last event, so it is delivered to
//     subscriptions to the order, too.
//   - An order record that other software wrote without an event is delivered without one. This
//     program's own changes raise the record's version and have an event.
func (c *changes) deliver() {
	for i, after := range c.after {
		before := c.before[i]
		r := after
		if r == nil {
			r = before
		}
		k := model.KeyOf(r)
		switch {
		case strings.HasPrefix(k.PK, model.EntityOrder.PK.Literal()) && k.SK == string(model.EntityOrder.SK):
			c.header(strings.TrimPrefix(k.PK, model.EntityOrder.PK.Literal()), before, after)
		case strings.HasPrefix(k.PK, model.EntityOrderEvent.PK.Literal()) && strings.HasPrefix(k.SK, model.EntityOrderEvent.SK.Literal()):
			if before == nil {
				c.event(strings.TrimPrefix(k.PK, model.EntityOrderEvent.PK.Literal()), after)
			}
		case strings.HasPrefix(k.PK, model.EntityLastEvent.PK.Literal()) && k.SK == string(model.EntityLastEvent.SK):
			c.lastEvent(strings.TrimPrefix(k.PK, model.EntityLastEvent.PK.Literal()), before, after)
		}
	}
}

// event delivers a new entry of an order's timeline.
func (c *changes) event(order string, after model.Record) {
	of := topic{topicOrder, order}
	subscribed, status := c.feed.subscribed(of), c.feed.statusSubscribed()
	if !subscribed && !status {
		return
	}
	own := model.IsOwnEvent(after)
	if own && !status {
		return
	}
	event, err := model.ReadEvent(after)
	if err != nil {
		c.feed.unreadable(err)
		return
	}
	change := OrderChange{OrderID: commerce.OrderID(order), Event: event}.withOrder(c.image(order, event.At))
	if !own {
		c.feed.deliver(of, change)
	}
	if event.To != event.From {
		if own {
			change.Position = c.feed.table.Position(event.ID)
		}
		c.feed.deliverStatus(event.To, change)
	}
}

// lastEvent delivers an event of one of a customer's orders.
func (c *changes) lastEvent(customer string, before, after model.Record) {
	topics := []topic{{topicCustomer, customer}, {topicOrder, model.TextOf(after, "orderId")}}
	if after == nil || !slices.ContainsFunc(topics, c.feed.subscribed) {
		return
	}
	was, is := model.LastEventID(before), model.LastEventID(after)
	position := c.feed.table.Position(is)
	if is == was || position != "" && position <= c.feed.table.Position(was) {
		return // written by an import or a repair
	}
	event, err := model.DecodeEvent(model.Reader{Record: after})
	if err != nil {
		c.feed.unreadable(err)
		return
	}
	for _, of := range topics {
		change := OrderChange{OrderID: event.OrderID, Event: event, Position: position, Customer: commerce.CustomerID(customer)}
		c.feed.deliver(of, change.withOrder(c.image(string(event.OrderID), event.At)))
	}
}

// header delivers an order record that was written without an event.
func (c *changes) header(id string, before, after model.Record) {
	was, is := model.Reader{Record: before}, model.Reader{Record: after}
	if after != nil && (is.Number(model.AttrVersion) > was.Number(model.AttrVersion) || before != nil && model.SameRecord(before, after)) {
		return
	}
	of, customers := topic{topicOrder, id}, map[string]bool{}
	wanted := c.feed.subscribed(of)
	for _, customer := range []string{was.Text(model.AttrCustomerID), is.Text(model.AttrCustomerID)} {
		if customer != "" && c.feed.subscribed(topic{topicCustomer, customer}) {
			customers[customer], wanted = true, true
		}
	}
	moved := after != nil && is.Text("status") != was.Text("status")
	if !wanted && (!moved || !c.feed.statusSubscribed()) {
		return
	}
	change := OrderChange{OrderID: commerce.OrderID(id)}
	if after != nil {
		order, err := c.feed.table.DecodeOrder(model.Reader{Record: after})
		if err != nil {
			c.feed.unreadable(err)
			return
		}
		change = change.withOrder(order)
	}
	c.feed.deliver(of, change)
	for customer := range customers {
		own := change
		if after != nil && customer != is.Text(model.AttrCustomerID) {
			own.Order, own.Customer = nil, "" // the order belongs to another customer now
		}
		c.feed.deliver(topic{topicCustomer, customer}, own)
	}
	if moved {
		c.feed.deliverStatus(change.Order.Status, change)
	}
}

// image returns the order right after the change at that time, or nil if the source did not report
// it. Changes of one order have different times.
func (c *changes) image(order string, at time.Time) *commerce.Order {
	if c.images == nil {
		c.images, c.orders = map[string][]model.Record{}, map[string]map[int64]*commerce.Order{}
		for _, r := range c.after {
			k := model.KeyOf(r)
			if strings.HasPrefix(k.PK, model.EntityOrder.PK.Literal()) && k.SK == string(model.EntityOrder.SK) ||
				strings.HasPrefix(k.PK, model.EntityCustomerOrder.PK.Literal()) && strings.HasPrefix(k.SK, model.EntityCustomerOrder.SK.Literal()) {
				is := model.Reader{Record: r}
				id := is.Text("orderId")
				c.images[id] = append(c.images[id], r)
			}
		}
	}
	byTime, decoded := c.orders[order]
	if !decoded { // each record is decoded once, however many changes the order has
		byTime = make(map[int64]*commerce.Order, len(c.images[order]))
		for _, r := range c.images[order] {
			if o, err := c.feed.table.DecodeOrder(model.Reader{Record: r}); err == nil && byTime[o.UpdatedAt.UnixNano()] == nil {
				byTime[o.UpdatedAt.UnixNano()] = o
			}
		}
		c.orders[order] = byTime
	}
	return byTime[at.UnixNano()]
}

// subscribed reports whether a topic has subscriptions. The caller holds mu.
func (f *Feed) subscribed(t topic) bool { return len(f.subscriptions[t]) > 0 }

// statusSubscribed reports whether any status has subscriptions. The caller holds mu.
func (f *Feed) statusSubscribed() bool {
	if f.subscribed(statusTopic(0)) {
		return true
	}
	for _, status := range commerce.Statuses() {
		if f.subscribed(statusTopic(status)) {
			return true
		}
	}
	return false
}

// deliver delivers a change to the subscriptions to a topic, and ends those whose queue is full.
// The caller holds mu.
func (f *Feed) deliver(t topic, change OrderChange) {
	list := f.subscriptions[t]
	// From the end: detach replaces a subscription with the last one, which has the change already.
	for i := len(list) - 1; i >= 0; i-- {
		if s := list[i]; !s.deliver(change) {
			f.detach(s)
		}
	}
}

// deliverStatus delivers a change to subscriptions to a status and to all statuses. The caller
// holds mu.
func (f *Feed) deliverStatus(status commerce.Status, change OrderChange) {
	if status != 0 {
		f.deliver(statusTopic(status), change)
		f.deliver(statusTopic(0), change)
	}
}
