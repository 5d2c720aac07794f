package feed

import (
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// changeBatch is a batch of changes of records that the source reports together.
type changeBatch struct {
	feed *Feed
	// before and after are the records before and after their change. A record that did not exist is
	// nil.
	before, after []map[string]types.AttributeValue
	// images are the order records in after, by order ID. orders are the decoded orders, by order ID
	// and UpdatedAt. Both are filled on first use.
	images map[string][]model.Record
	orders map[string]map[int64]*commerce.Order
}

// deliver turns changes of records into changes of orders and delivers them. It decodes only
// records that have a subscription. The caller holds the feed's lock.
//
//   - The record of a customer's last event goes to subscriptions to the customer and to the
//     event's order. Every event of the customer's orders updates this record. So the changes of
//     the record are these events, in the order of the commits.
//   - A new event in the timeline of an order goes to subscriptions to the new status of the order.
//     An event by other software does not update the last event, so it also goes to subscriptions
//     to the order.
//   - An order record that other software wrote without an event is delivered without an event.
//     This program's own changes increase the record's version and have an event.
func (c *changeBatch) deliver() {
	for i, after := range c.after {
		before := c.before[i]
		r := after
		if r == nil {
			r = before
		}
		k := model.KeyOf(r)
		switch {
		case strings.HasPrefix(k.PK, model.EntityOrder.PK.Prefix()) && k.SK == string(model.EntityOrder.SK):
			c.deliverOrderRecord(strings.TrimPrefix(k.PK, model.EntityOrder.PK.Prefix()), before, after)
		case strings.HasPrefix(k.PK, model.EntityOrderEvent.PK.Prefix()) && strings.HasPrefix(k.SK, model.EntityOrderEvent.SK.Prefix()):
			if before == nil {
				c.deliverEvent(strings.TrimPrefix(k.PK, model.EntityOrderEvent.PK.Prefix()), after)
			}
		case strings.HasPrefix(k.PK, model.EntityLastEvent.PK.Prefix()) && k.SK == string(model.EntityLastEvent.SK):
			c.deliverLastEvent(strings.TrimPrefix(k.PK, model.EntityLastEvent.PK.Prefix()), before, after)
		}
	}
}

// deliverEvent delivers a new entry of an order's timeline.
func (c *changeBatch) deliverEvent(order string, after model.Record) {
	orderTopic := topic{topicOrder, order}
	orderSubscribed, statusSubscribed := c.feed.hasSubscriptions(orderTopic), c.feed.hasStatusSubscriptions()
	if !orderSubscribed && !statusSubscribed {
		return
	}
	own := model.IsOwnEvent(after)
	if own && !statusSubscribed {
		return
	}
	event, err := model.DecodeTimelineEvent(after)
	if err != nil {
		c.feed.logUnreadable(err)
		return
	}
	change := OrderChange{OrderID: commerce.OrderID(order), Event: event}.withOrder(c.orderAt(order, event.At))
	if !own {
		c.feed.deliver(orderTopic, change)
	}
	if event.To != event.From {
		if own {
			change.Position = c.feed.table.EventPosition(event.ID)
		}
		c.feed.deliverStatus(event.To, change)
	}
}

// deliverLastEvent delivers an event of one of a customer's orders.
func (c *changeBatch) deliverLastEvent(customer string, before, after model.Record) {
	topics := []topic{{topicCustomer, customer}, {topicOrder, model.TextOf(after, "orderId")}}
	if after == nil || !slices.ContainsFunc(topics, c.feed.hasSubscriptions) {
		return
	}
	previous, current := model.LastEventID(before), model.LastEventID(after)
	position := c.feed.table.EventPosition(current)
	if current == previous || position != "" && position <= c.feed.table.EventPosition(previous) {
		return // an import or a repair wrote the record
	}
	event, err := model.DecodeEvent(model.Reader{Record: after})
	if err != nil {
		c.feed.logUnreadable(err)
		return
	}
	for _, t := range topics {
		change := OrderChange{OrderID: event.OrderID, Event: event, Position: position, Customer: commerce.CustomerID(customer)}
		c.feed.deliver(t, change.withOrder(c.orderAt(string(event.OrderID), event.At)))
	}
}

// deliverOrderRecord delivers an order record that was written without an event.
func (c *changeBatch) deliverOrderRecord(id string, before, after model.Record) {
	previous, current := model.Reader{Record: before}, model.Reader{Record: after}
	if after != nil && (current.Number(model.AttrVersion) > previous.Number(model.AttrVersion) || before != nil && model.EqualRecords(before, after)) {
		return
	}
	orderTopic, customers := topic{topicOrder, id}, map[string]bool{}
	subscribed := c.feed.hasSubscriptions(orderTopic)
	for _, customer := range []string{previous.Text(model.AttrCustomerID), current.Text(model.AttrCustomerID)} {
		if customer != "" && c.feed.hasSubscriptions(topic{topicCustomer, customer}) {
			customers[customer], subscribed = true, true
		}
	}
	statusChanged := after != nil && current.Text("status") != previous.Text("status")
	if !subscribed && (!statusChanged || !c.feed.hasStatusSubscriptions()) {
		return
	}
	change := OrderChange{OrderID: commerce.OrderID(id)}
	if after != nil {
		order, err := c.feed.table.DecodeOrder(model.Reader{Record: after})
		if err != nil {
			c.feed.logUnreadable(err)
			return
		}
		change = change.withOrder(order)
	}
	c.feed.deliver(orderTopic, change)
	for customer := range customers {
		visible := change
		if after != nil && customer != current.Text(model.AttrCustomerID) {
			visible.Order, visible.Customer = nil, "" // the order belongs to another customer now
		}
		c.feed.deliver(topic{topicCustomer, customer}, visible)
	}
	if statusChanged {
		c.feed.deliverStatus(change.Order.Status, change)
	}
}

// orderAt returns the order right after its change at the given time. It returns nil if the source
// did not report the order's record. Changes of one order have different times.
func (c *changeBatch) orderAt(order string, at time.Time) *commerce.Order {
	if c.images == nil {
		c.images, c.orders = map[string][]model.Record{}, map[string]map[int64]*commerce.Order{}
		for _, r := range c.after {
			k := model.KeyOf(r)
			if strings.HasPrefix(k.PK, model.EntityOrder.PK.Prefix()) && k.SK == string(model.EntityOrder.SK) ||
				strings.HasPrefix(k.PK, model.EntityCustomerOrder.PK.Prefix()) && strings.HasPrefix(k.SK, model.EntityCustomerOrder.SK.Prefix()) {
				id := model.TextOf(r, "orderId")
				c.images[id] = append(c.images[id], r)
			}
		}
	}
	byTime, decoded := c.orders[order]
	if !decoded { // decode each record once for all changes of the order
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

// hasSubscriptions reports whether a topic has subscriptions. The caller holds mu.
func (f *Feed) hasSubscriptions(t topic) bool { return len(f.subscriptions[t]) > 0 }

// hasStatusSubscriptions reports whether any status has subscriptions. The caller holds mu.
func (f *Feed) hasStatusSubscriptions() bool {
	if f.hasSubscriptions(statusTopic(0)) {
		return true
	}
	for _, status := range commerce.Statuses() {
		if f.hasSubscriptions(statusTopic(status)) {
			return true
		}
	}
	return false
}

// deliver delivers a change to the subscriptions to a topic, and ends those whose queue is full.
// The caller holds mu.
func (f *Feed) deliver(t topic, change OrderChange) {
	list := f.subscriptions[t]
	// Iterate backwards: detach moves the last subscription, which already has the change, to the
	// index of the removed one.
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
