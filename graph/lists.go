package graph

import (
	"strconv"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/graph/operation"
)

// paging are the arguments that choose a page, and whether the query asks if there are more beyond
// it.
type paging struct {
	first  *int32
	after  *string
	last   *int32
	before *string
	beyond operation.Beyond
}

// page reads the arguments. This is the one place where the size of a page is decided.
//
// Errors: commerce.InvalidError that names the argument.
func (p paging) page(list cursorScope) (dynamo.Page, error) {
	page := dynamo.Page{Limit: operation.DefaultPage, More: p.beyond.Next}
	size, argument := p.first, "first"
	if p.last != nil && p.first != nil {
		return page, commerce.For("last", commerce.Invalid("stands beside \"first\": give one of them"))
	}
	// Whoever gives a cursor to read up to, and no size, means the page before it.
	if p.last != nil || p.first == nil && p.before != nil && p.after == nil {
		page.FromEnd, page.More = true, p.beyond.Previous
		size, argument = p.last, "last"
	}
	if size != nil {
		if *size < 1 || *size > operation.MaxPage {
			return page, commerce.For(argument, commerce.Invalid("is %d: a page has 1 to %d", *size, operation.MaxPage))
		}
		page.Limit = int(*size)
	}
	var err error
	if p.after != nil {
		if page.After, err = list.open(*p.after); err != nil {
			return page, commerce.For("after", err)
		}
	}
	if p.before != nil {
		if page.Before, err = list.open(*p.before); err != nil {
			return page, commerce.For("before", err)
		}
	}
	return page, nil
}

// listRequest is a page of a list that a field requests: the key by which the loader knows the page,
// and the scope of its cursors. Every argument but those that choose the page is part of both.
type listRequest struct {
	key   dynamo.ListRequest
	scope cursorScope
	// err is the first error of an argument.
	err error
}

// request begins a request for the list of a field. of is the ID of the record that the list belongs
// to.
func (c Cursors) request(field string, of ...string) listRequest {
	q := listRequest{scope: c.of(field)}
	for _, id := range of {
		q.key.Of = id
		q.scope.add(id)
	}
	return q
}

// refuse records an error of an argument.
func (q *listRequest) refuse(argument string, err error) {
	if q.err == nil {
		q.err = commerce.For(argument, err)
	}
}

// text limits the list to the records whose key has a text that the client searches for.
func (q *listRequest) text(argument, text string) {
	text, err := commerce.ParseText(text, maxText)
	if err != nil {
		q.refuse(argument, err)
	}
	q.key.Of = text
	q.scope.add(text)
}

// maxText is the maximum length in bytes of a text to search for: DynamoDB's limit for keys has
// room for it.
const maxText = 256

// status limits a list of orders to one status.
func (q *listRequest) status(argument string, status commerce.Status) {
	if status == 0 {
		q.refuse(argument, commerce.Invalid("is missing"))
	}
	q.addStatuses(dynamo.Statuses(status))
}

// statuses limits a list of orders to some statuses, and reports whether there are any. nil stands
// for all.
func (q *listRequest) statuses(argument string, statuses []commerce.Status) bool {
	if statuses != nil && len(statuses) == 0 {
		q.refuse(argument, commerce.Invalid("is empty: name at least one status, or leave it out for all"))
	}
	q.addStatuses(dynamo.Statuses(statuses...))
	return len(statuses) > 0
}

func (q *listRequest) addStatuses(set dynamo.StatusSet) {
	q.key.Statuses = set
	q.scope.add(strconv.Itoa(int(set)))
}

// timeRange limits a list of orders to those placed in a time, and reports whether it limits it.
func (q *listRequest) timeRange(argument string, r *commerce.TimeRange) bool {
	var in commerce.TimeRange
	if r != nil {
		in = *r
	}
	if err := in.Check(); err != nil {
		q.refuse(argument, err)
	}
	q.scope.add(timeText(in.From) + "/" + timeText(in.To))
	if in == (commerce.TimeRange{}) {
		return false
	}
	q.key.Range = dynamo.PlacedIn(in)
	return true
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

// dateRange limits a list of employees to those hired on some days, and reports whether it limits
// it.
func (q *listRequest) dateRange(argument string, r *commerce.DateRange) bool {
	var days commerce.DateRange
	if r != nil {
		days = *r
	}
	if err := days.Check(); err != nil {
		q.refuse(argument, err)
	}
	q.key.Range = dynamo.HiredOn(days)
	q.scope.add(string(days.From))
	q.scope.add(string(days.To))
	return days != (commerce.DateRange{})
}

// page sets the page, after all other arguments.
func (q *listRequest) page(p paging) {
	if q.err == nil {
		q.key.Page, q.err = p.page(q.scope)
	}
}
