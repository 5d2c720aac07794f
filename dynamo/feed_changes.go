package dynamo

import (
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// changes are changes of records that the source told at once: each as it was before and as it is
// after, nil for none.
type changes struct {
	feed          *Feed
	before, after []map[string]types.AttributeValue
	// images are the records of orders among them by the order's id, once somebody asks for one,
	// and orders what they tell by its time.
	images map[string][]model.Record
	orders map[string]map[int64]*commerce.Order
}

// tell makes changes of orders of them, and tells those who follow. Nothing is decoded that nobody
// follows. The feed's lock is held.
//
//   - The record of a customer's last event is told to those who follow the customer, and those who follow the event's order. It is
//     written with every event of the customer's orders, so what the stream tells of it are these events, in the order in which they
//     were committed.
//   - A new event in the timeline of an order is told to those who follow the status that it moved to. Where other software wrote it,
//     no last event tells of it, and it is told to those who follow the order, too.
//   - A record of an order that is written without an event, because other software wrote it, is told without one. What this program
//     writes raises the record's version, and has an event.
func (c *changes) tell() {
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
	followed, status := c.feed.followed(of), c.feed.statusFollowed()
	if !followed && !status {
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
		c.feed.tell(of, change)
	}
	if event.To != event.From {
		if own {
			change.Position = c.feed.table.Position(event.ID)
		}
		c.feed.tellStatus(event.To, change)
	}
}

// lastEvent delivers an event of one of a customer's orders.
func (c *changes) lastEvent(customer string, before, after model.Record) {
	topics := []topic{{topicCustomer, customer}, {topicOrder, model.TextOf(after, "orderId")}}
	if after == nil || !slices.ContainsFunc(topics, c.feed.followed) {
		return
	}
	was, is := model.LastEventID(before), model.LastEventID(after)
	position := c.feed.table.Position(is)
	if is == was || position != "" && position <= c.feed.table.Position(was) {
		return // an import's, or a repair's
	}
	event, err := model.DecodeEvent(model.Reader{Record: after})
	if err != nil {
		c.feed.unreadable(err)
		return
	}
	for _, of := range topics {
		change := OrderChange{OrderID: event.OrderID, Event: event, Position: position, Customer: commerce.CustomerID(customer)}
		c.feed.tell(of, change.withOrder(c.image(string(event.OrderID), event.At)))
	}
}

// header tells of an order's record that was written without an event.
func (c *changes) header(id string, before, after model.Record) {
	was, is := model.Reader{Record: before}, model.Reader{Record: after}
	if after != nil && (is.Number(model.AttrVersion) > was.Number(model.AttrVersion) || before != nil && model.SameRecord(before, after)) {
		return
	}
	of, customers := topic{topicOrder, id}, map[string]bool{}
	heard := c.feed.followed(of)
	for _, customer := range []string{was.Text(model.AttrCustomerID), is.Text(model.AttrCustomerID)} {
		if customer != "" && c.feed.followed(topic{topicCustomer, customer}) {
			customers[customer], heard = true, true
		}
	}
	moved := after != nil && is.Text("status") != was.Text("status")
	if !heard && (!moved || !c.feed.statusFollowed()) {
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
	c.feed.tell(of, change)
	for customer := range customers {
		told := change
		if after != nil && customer != is.Text(model.AttrCustomerID) {
			told.Order, told.Customer = nil, "" // it is another customer's now
		}
		c.feed.tell(topic{topicCustomer, customer}, told)
	}
	if moved {
		c.feed.tellStatus(change.Order.Status, change)
	}
}

// image is the order as the change of that time left it, nil where that did not come along. Changes
// of one order have different times.
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
	told, known := c.orders[order]
	if !known { // each is read once, however often the order has changed
		told = make(map[int64]*commerce.Order, len(c.images[order]))
		for _, r := range c.images[order] {
			if o, err := c.feed.table.DecodeOrder(model.Reader{Record: r}); err == nil && told[o.UpdatedAt.UnixNano()] == nil {
				told[o.UpdatedAt.UnixNano()] = o
			}
		}
		c.orders[order] = told
	}
	return told[at.UnixNano()]
}

// followed tells whether anybody follows that. The lock is held.
func (f *Feed) followed(t topic) bool { return len(f.followers[t]) > 0 }

// statusFollowed tells whether anybody follows any status. The lock is held.
func (f *Feed) statusFollowed() bool {
	if f.followed(statusTopic(0)) {
		return true
	}
	for _, status := range commerce.Statuses() {
		if f.followed(statusTopic(status)) {
			return true
		}
	}
	return false
}

// tell tells all who follow that, and cuts those who are too slow. The lock is held.
func (f *Feed) tell(t topic, change OrderChange) {
	list := f.followers[t]
	// From the end, where one who is cut is replaced by one who was told already.
	for i := len(list) - 1; i >= 0; i-- {
		if w := list[i]; !w.tell(change) {
			f.detach(w)
		}
	}
}

// tellStatus tells those who follow a status, and all statuses. The lock is held.
func (f *Feed) tellStatus(status commerce.Status, change OrderChange) {
	if status != 0 {
		f.tell(statusTopic(status), change)
		f.tell(statusTopic(0), change)
	}
}
