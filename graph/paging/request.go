// Package paging implements pagination: page arguments, signed cursors and connections. Within the
// module, it imports only commerce, dynamo and graph/operation.
package paging

import (
	"strconv"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/graph/operation"
)

// Arguments contains the arguments that choose a page of a list. Beyond reports whether the query
// selects hasNextPage or hasPreviousPage. For a selected field, the server must check whether the
// list has more records in this direction.
type Arguments struct {
	First  *int32
	After  *string
	Last   *int32
	Before *string
	Beyond operation.PageInfoSelection
}

// pageRequest converts the page arguments for the given list to a dynamo.PageRequest. If an
// argument is invalid, it returns a commerce.InvalidError.
func (p Arguments) pageRequest(list CursorScope) (dynamo.PageRequest, error) {
	page := dynamo.PageRequest{Limit: operation.DefaultPageSize, DetectMore: p.Beyond.HasNextPage}
	size, argument := p.First, "first"
	if p.Last != nil && p.First != nil {
		return page, commerce.ErrorWithArgument("last", commerce.NewInvalidError("cannot be combined with \"first\": use one of them"))
	}
	// If the client sets "last", or sets only "before", the page contains the last records of the
	// range. The range ends at the cursor in "before", or at the end of the list.
	if p.Last != nil || p.First == nil && p.Before != nil && p.After == nil {
		page.FromEnd, page.DetectMore = true, p.Beyond.HasPreviousPage
		size, argument = p.Last, "last"
	}
	if size != nil {
		if *size < 1 || *size > operation.MaxPageSize {
			return page, commerce.ErrorWithArgument(argument, commerce.NewInvalidError("is %d: use 1 to %d", *size, operation.MaxPageSize))
		}
		page.Limit = int(*size)
	}
	var err error
	if p.After != nil {
		if page.After, err = list.Decode(*p.After); err != nil {
			return page, commerce.ErrorWithArgument("after", err)
		}
	}
	if p.Before != nil {
		if page.Before, err = list.Decode(*p.Before); err != nil {
			return page, commerce.ErrorWithArgument("before", err)
		}
	}
	return page, nil
}

// Request is a request for one page of the list that a field returns.
type Request struct {
	// Key identifies the page for the loader.
	Key dynamo.ListRequest
	// Scope identifies the list for cursors. It does not include the page arguments, because a
	// cursor is valid for all pages of its list.
	Scope CursorScope
	// Err is the error of the first invalid argument.
	Err error
	// empty is true if no record can match the arguments, so the list is empty.
	empty bool
}

// NewRequest returns the request for the list of a field. If the list belongs to a record, parent
// is the ID of the record.
func (c CursorSigner) NewRequest(field string, parent ...string) Request {
	q := Request{Scope: c.ScopeOfList(field)}
	for _, id := range parent {
		q.Key.PartitionValue = id
		q.Scope.addArgument(id)
	}
	return q
}

// reject stores the error of an argument, unless q already contains an error.
func (q *Request) reject(argument string, err error) {
	if q.Err == nil {
		q.Err = commerce.ErrorWithArgument(argument, err)
	}
}

// FilterPartition limits the list to one partition, such as the products of a category. It
// normalizes the text like names. If commerce.ParseFilter rejects the text, no record can match,
// so the list is empty.
func (q *Request) FilterPartition(text string) {
	text, err := commerce.ParseFilter(text, maxFilterBytes)
	if err != nil {
		q.empty = true
	}
	q.Key.PartitionValue = text
	q.Scope.addArgument(text)
}

// FilterOptionalPartition calls FilterPartition if text is not nil. It reports whether it has
// called FilterPartition.
func (q *Request) FilterOptionalPartition(text *string) bool {
	if text == nil {
		return false
	}
	q.FilterPartition(*text)
	return true
}

// NamePrefix limits a list to names that begin with a text. Case is ignored. If the text is nil or
// empty, NamePrefix does nothing and returns false.
func (q *Request) NamePrefix(text *string) bool {
	if text == nil || *text == "" {
		return false
	}
	prefix := *text
	if len(prefix) > maxFilterBytes {
		q.empty, prefix = true, prefix[:maxFilterBytes] // folding a long text would take too much time
	}
	q.Key.Range = dynamo.NamePrefixRange(prefix)
	q.Scope.addArgument("#" + commerce.FoldName(prefix)) // '#' distinguishes a prefix from the text of FilterPartition
	return true
}

// EmailPrefix is like NamePrefix, but for email addresses. A list cannot have both limits.
func (q *Request) EmailPrefix(argument string, text *string) bool {
	if text == nil || *text == "" {
		return false
	}
	if q.Key.Range != (dynamo.Range{}) {
		q.reject(argument, commerce.NewInvalidError("cannot be combined with \"namePrefix\": use one of them"))
	}
	q.Key.Range = dynamo.EmailPrefixRange(*text)
	prefix, _ := commerce.EmailKeyPrefix(*text)
	q.Scope.addArgument("@" + prefix) // '@' distinguishes an email prefix from a name prefix
	return true
}

// maxFilterBytes is the maximum size of a search text in bytes. A text of this size fits into every
// key.
const maxFilterBytes = 256

// FilterStatus limits a list of orders to the orders with one status.
func (q *Request) FilterStatus(argument string, status commerce.Status) {
	if status == 0 {
		q.reject(argument, commerce.NewInvalidError("is missing: set a status"))
	}
	q.addStatuses(dynamo.NewStatusSet(status))
}

// FilterPaymentDue limits a list of orders to the orders that wait for a payment in one way.
func (q *Request) FilterPaymentDue(_ string, due commerce.PaymentDue) {
	q.Key.PartitionValue = string(due)
	q.Scope.addArgument(string(due))
}

// FilterReturnStatus limits a list of returns to the returns in a status.
func (q *Request) FilterReturnStatus(_ string, status commerce.ReturnStatus) {
	q.Key.PartitionValue = string(status)
	q.Scope.addArgument(string(status))
}

// FilterStatuses limits a list to orders with the given statuses. It returns true if there is at
// least one status. If statuses is nil, the list is not limited. If statuses is empty but not nil,
// the list is empty.
func (q *Request) FilterStatuses(statuses []commerce.Status) bool {
	q.empty = q.empty || statuses != nil && len(statuses) == 0
	q.addStatuses(dynamo.NewStatusSet(statuses...))
	return len(statuses) > 0
}

func (q *Request) addStatuses(set dynamo.StatusSet) {
	q.Key.Statuses = set
	q.Scope.addArgument(strconv.Itoa(int(set)))
}

// FilterTimeRange limits a list to orders that were placed in a time range. It returns true if the
// range has a start or an end. If r is nil, the list is not limited.
func (q *Request) FilterTimeRange(argument string, r *commerce.TimeRange) bool {
	var times commerce.TimeRange
	if r != nil {
		times = *r
	}
	if err := times.Validate(); err != nil {
		q.reject(argument, err)
	}
	q.Scope.addArgument(timeText(times.From) + "/" + timeText(times.To))
	if times == (commerce.TimeRange{}) {
		return false
	}
	q.Key.Range = dynamo.PlacedOrdersRange(times)
	return true
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

// FilterDateRange limits a list to employees who were hired in a date range. It returns true if the
// range has a start or an end. If r is nil, the list is not limited.
func (q *Request) FilterDateRange(argument string, r *commerce.DateRange) bool {
	var days commerce.DateRange
	if r != nil {
		days = *r
	}
	if err := days.Validate(); err != nil {
		q.reject(argument, err)
	}
	q.Key.Range = dynamo.HireDateRange(days)
	q.Scope.addArgument(string(days.From))
	q.Scope.addArgument(string(days.To))
	return days != (commerce.DateRange{})
}

// FilterBelow limits a list to inventory levels with less than the given quantity. If below is nil,
// the list is not limited.
func (q *Request) FilterBelow(below *int32) {
	if below == nil {
		return
	}
	q.Key.Range = dynamo.QuantityRange(int(*below))
	q.Scope.addArgument(strconv.Itoa(int(*below)))
}

// SetPage sets the page of the list. Call SetPage last, because it checks that the cursors were
// created with the same values of all other arguments.
func (q *Request) SetPage(p Arguments) {
	if q.Err == nil {
		q.Key.Page, q.Err = p.pageRequest(q.Scope)
	}
	if q.empty {
		q.Key.Range = dynamo.Range{Empty: true}
	}
}
