// Package paging has the pages of lists: the arguments that choose one, signed cursors, and the
// connections that clients get. Of the module it imports commerce, dynamo and graph/operation.
package paging

import (
	"strconv"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/graph/operation"
)

// Arguments are the arguments that choose a page, and whether the query asks if there are more
// beyond it.
type Arguments struct {
	First  *int32
	After  *string
	Last   *int32
	Before *string
	Beyond operation.Beyond
}

// page reads the arguments. This is the one place where the size of a page is decided.
//
// Errors: commerce.InvalidError that names the argument.
func (p Arguments) page(list Scope) (dynamo.Page, error) {
	page := dynamo.Page{Limit: operation.DefaultPage, More: p.Beyond.Next}
	size, argument := p.First, "first"
	if p.Last != nil && p.First != nil {
		return page, commerce.For("last", commerce.Invalid("stands beside \"first\": give one of them"))
	}
	// Whoever gives a cursor to read up to, and no size, means the page before it.
	if p.Last != nil || p.First == nil && p.Before != nil && p.After == nil {
		page.FromEnd, page.More = true, p.Beyond.Previous
		size, argument = p.Last, "last"
	}
	if size != nil {
		if *size < 1 || *size > operation.MaxPage {
			return page, commerce.For(argument, commerce.Invalid("is %d: a page has 1 to %d", *size, operation.MaxPage))
		}
		page.Limit = int(*size)
	}
	var err error
	if p.After != nil {
		if page.After, err = list.Open(*p.After); err != nil {
			return page, commerce.For("after", err)
		}
	}
	if p.Before != nil {
		if page.Before, err = list.Open(*p.Before); err != nil {
			return page, commerce.For("before", err)
		}
	}
	return page, nil
}

// Request is a page of a list that a field requests: the key by which the loader knows the page,
// and the scope of its cursors. Every argument but those that choose the page is part of both.
type Request struct {
	Key   dynamo.ListRequest
	Scope Scope
	// Err is the first error of an argument.
	Err error
	// none reports whether an argument makes the list empty.
	none bool
}

// Request begins a request for the list of a field. of is the ID of the record that the list
// belongs to.
func (c Cursors) Request(field string, of ...string) Request {
	q := Request{Scope: c.Scope(field)}
	for _, id := range of {
		q.Key.Of = id
		q.Scope.add(id)
	}
	return q
}

// refuse records an error of an argument.
func (q *Request) refuse(argument string, err error) {
	if q.Err == nil {
		q.Err = commerce.For(argument, err)
	}
}

// Text limits the list to the records with a text in their key. If the text is not allowed in a
// key, the list is empty.
func (q *Request) Text(text string) {
	text, err := commerce.ParseText(text, maxText)
	if err != nil {
		q.none = true
	}
	q.Key.Of = text
	q.Scope.add(text)
}

// OptionalText is Text for a text that may be left out, and reports whether there is one.
func (q *Request) OptionalText(text *string) bool {
	if text == nil {
		return false
	}
	q.Text(*text)
	return true
}

// Prefix limits a list by name to the names that begin with a text, whatever its case, and reports
// whether it limits it: an empty text does not. If no name can begin with it, the list is empty.
func (q *Request) Prefix(text *string) bool {
	if text == nil || *text == "" {
		return false
	}
	q.none = q.none || len(*text) > maxText
	q.Key.Range = dynamo.NamedLike(*text)
	q.Scope.add("#" + commerce.FoldName(*text)) // no Text has a '#'
	return true
}

// maxText is the maximum length in bytes of a text to search for: DynamoDB's limit for keys has
// room for it.
const maxText = 256

// Status limits a list of orders to one status.
func (q *Request) Status(argument string, status commerce.Status) {
	if status == 0 {
		q.refuse(argument, commerce.Invalid("is missing"))
	}
	q.addStatuses(dynamo.Statuses(status))
}

// Statuses limits a list of orders to some statuses, and reports whether there are any. nil stands
// for all statuses; the list of an empty slice is empty.
func (q *Request) Statuses(statuses []commerce.Status) bool {
	q.none = q.none || statuses != nil && len(statuses) == 0
	q.addStatuses(dynamo.Statuses(statuses...))
	return len(statuses) > 0
}

func (q *Request) addStatuses(set dynamo.StatusSet) {
	q.Key.Statuses = set
	q.Scope.add(strconv.Itoa(int(set)))
}

// TimeRange limits a list of orders to those placed in a time, and reports whether it limits it.
func (q *Request) TimeRange(argument string, r *commerce.TimeRange) bool {
	var in commerce.TimeRange
	if r != nil {
		in = *r
	}
	if err := in.Check(); err != nil {
		q.refuse(argument, err)
	}
	q.Scope.add(timeText(in.From) + "/" + timeText(in.To))
	if in == (commerce.TimeRange{}) {
		return false
	}
	q.Key.Range = dynamo.PlacedIn(in)
	return true
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

// DateRange limits a list of employees to those hired on some days, and reports whether it limits
// it.
func (q *Request) DateRange(argument string, r *commerce.DateRange) bool {
	var days commerce.DateRange
	if r != nil {
		days = *r
	}
	if err := days.Check(); err != nil {
		q.refuse(argument, err)
	}
	q.Key.Range = dynamo.HiredOn(days)
	q.Scope.add(string(days.From))
	q.Scope.add(string(days.To))
	return days != (commerce.DateRange{})
}

// SetPage sets the page, after all other arguments.
func (q *Request) SetPage(p Arguments) {
	if q.Err == nil {
		q.Key.Page, q.Err = p.page(q.Scope)
	}
	if q.none {
		q.Key.Range = dynamo.Range{None: true}
	}
}
