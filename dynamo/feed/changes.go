package feed

import (
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// changeBatch contains the changes of records that the source reports in one call.
type changeBatch struct {
	feed *Feed
	// before[i] and after[i] are a record before and after its change. before[i] is nil if the change
	// created the record, and after[i] is nil if the change deleted it.
	before, after []map[string]types.AttributeValue
	// images maps an order ID to the records of this order in after. orderAt fills images and orders.
	images map[string][]model.Record
	// orders maps an order ID and an UpdatedAt, in Unix nanoseconds, to the decoded order.
	orders map[string]map[int64]*commerce.Order
}

// deliver converts changes of records to changes of orders and delivers them to subscriptions. The
// caller holds the feed's mu.
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
			c.deliverExternalOrderChange(strings.TrimPrefix(k.PK, model.EntityOrder.PK.Prefix()), before, after)
		case strings.HasPrefix(k.PK, model.EntityOrderEvent.PK.Prefix()) && strings.HasPrefix(k.SK, model.EntityOrderEvent.SK.Prefix()):
			if before == nil {
				c.deliverEvent(strings.TrimPrefix(k.PK, model.EntityOrderEvent.PK.Prefix()), after)
			}
		case strings.HasPrefix(k.PK, model.EntityLastEvent.PK.Prefix()) && k.SK == string(model.EntityLastEvent.SK):
			// Every event of a customer's orders replaces this record. So its changes are the events, in the
			// order of the commits.
			c.deliverLastEvent(strings.TrimPrefix(k.PK, model.EntityLastEvent.PK.Prefix()), before, after)
		}
	}
}

// deliverEvent delivers a new event in the timeline of an order. after is the event's record.
func (c *changeBatch) deliverEvent(order string, after model.Record) {
	orderTopic := topic{topicOrder, order}
	orderSubscribed, statusSubscribed := c.feed.hasSubscriptions(orderTopic), c.feed.hasStatusSubscriptions()
	if !orderSubscribed && !statusSubscribed {
		return
	}
	own := model.IsOrdergraphEvent(after)
	if own && !statusSubscribed {
		return
	}
	event, err := model.DecodeTimelineEvent(after)
	if err != nil {
		c.feed.logUnreadable(err)
		return
	}
	change := OrderChange{OrderID: commerce.OrderID(order), Event: event}.withOrder(c.orderAt(order, event.At))
	// Other software does not update the record with the last event, so deliver its event to the order
	// here.
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

// deliverLastEvent delivers the new last event of a customer's orders. before is the old version of
// the record with the last event, and after is the new version.
func (c *changeBatch) deliverLastEvent(customer string, before, after model.Record) {
	topics := []topic{{topicCustomer, customer}, {topicOrder, model.TextOf(after, "orderId")}}
	if after == nil || !slices.ContainsFunc(topics, c.feed.hasSubscriptions) {
		return
	}
	previous, current := model.LastEventID(before), model.LastEventID(after)
	position := c.feed.table.EventPosition(current)
	if current == previous || position != "" && position <= c.feed.table.EventPosition(previous) {
		return // an import or a repair wrote the record, so it contains no new event
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

// deliverExternalOrderChange delivers a change that other software made to an order's record. A
// change that increases the record's version was made by Ordergraph. deliverExternalOrderChange
// ignores it, because deliverLastEvent delivers its event.
func (c *changeBatch) deliverExternalOrderChange(id string, before, after model.Record) {
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

// orderAt returns the order as it was after its change at the given time. Two changes of an order
// never have the same time. If the batch lacks the order's record for this change, orderAt returns
// nil.
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

// hasSubscriptions reports whether any subscription to a topic exists. The caller holds mu.
func (f *Feed) hasSubscriptions(t topic) bool { return len(f.subscriptions[t]) > 0 }

// hasStatusSubscriptions reports whether any subscription to a status or to all statuses exists.
// The caller holds mu.
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

// deliver delivers a change to all subscriptions to a topic. If the queue of a subscription is
// full, the subscription ends. The caller holds mu.
func (f *Feed) deliver(t topic, change OrderChange) {
	list := f.subscriptions[t]
	// Iterate backwards, because detach moves the last subscription of the list to the index of the
	// removed subscription. In this order, the moved subscription has already received the change.
	for i := len(list) - 1; i >= 0; i-- {
		if s := list[i]; !s.deliver(change) {
			f.detach(s)
		}
	}
}

// deliverStatus delivers a change to each subscription that covers the given status or all
// statuses. The caller holds mu.
func (f *Feed) deliverStatus(status commerce.Status, change OrderChange) {
	if status != 0 {
		f.deliver(statusTopic(status), change)
		f.deliver(statusTopic(0), change)
	}
}
