package dynamo

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// movingOrder is an order in a simulated table.
type movingOrder struct {
	id      string
	status  commerce.Status
	version int
	// listed reports whether the order has matched the list since the first page.
	listed bool
}

// movingOrders is a table of orders that simulates queries. Before each Query, orders are placed
// and change their status.
type movingOrders struct {
	*rapid.T
	shards int
	// orders are sorted by ID.
	orders []*movingOrder
	chosen []commerce.Status
	// truncate lets queries return fewer rows than requested, as DynamoDB does after a megabyte.
	truncate bool
	// rounds, queries and rows count the cost of a page.
	rounds, queries, rows int
}

func (m *movingOrders) place(status commerce.Status) *movingOrder {
	o := &movingOrder{id: fmt.Sprintf("%04d", len(m.orders)), status: status, version: 1}
	m.orders = append(m.orders, o)
	return o
}

func (m *movingOrders) move(o *movingOrder) {
	if next := o.status.Transitions(); len(next) > 0 {
		o.status, o.version = rapid.SampledFrom(next).Draw(m.T, "next"), o.version+1
		o.listed = o.listed && slices.Contains(m.chosen, o.status)
	}
}

// interfere makes the changes of other clients between two queries.
func (m *movingOrders) interfere() {
	switch rapid.IntRange(0, 5).Draw(m.T, "interference") {
	case 0, 1:
		if len(m.orders) > 0 {
			m.move(rapid.SampledFrom(m.orders).Draw(m.T, "moved"))
		}
	case 2: // all orders of a status change it
		status := rapid.SampledFrom(commerce.Statuses()).Draw(m.T, "emptied")
		for _, o := range m.orders {
			if o.status == status {
				m.move(o)
			}
		}
	case 3:
		if len(m.orders) < 80 {
			m.place(rapid.SampledFrom(commerce.Statuses()).Draw(m.T, "placed"))
		}
	}
}

// query simulates a Query of a partition.
func (m *movingOrders) query(partition string, b model.Range, limit int, forward bool) (rows []row, more bool) {
	if m.truncate {
		limit = rapid.IntRange(1, limit).Draw(m.T, "cut")
	}
	orders := slices.Clone(m.orders)
	if !forward {
		slices.Reverse(orders)
	}
	for _, o := range orders {
		in := o.id >= b.From && (b.To == "" || o.id < b.To)
		if key := "STATUS#" + o.status.String() + model.ShardSuffix(model.ShardOf(o.id, m.shards), m.shards); !in || key != partition {
			continue
		}
		if len(rows) == limit {
			break
		}
		r := model.Record{model.AttrPK: model.Str("ORDER#" + o.id), model.AttrSK: model.Str("#METADATA"), model.AttrVersion: model.Num(o.version)}
		rows = append(rows, row{position: o.id, record: model.Reader{Record: r}})
	}
	return rows, len(rows) == limit
}

// read reads a page in the same way as Store.read.
func (m *movingOrders) read(l listQuery) ([]row, error) {
	m.rounds, m.queries, m.rows = 0, 0, 0
	return l.read(func(readers []*partitionReader) error {
		m.rounds++
		for _, pr := range rapid.Permutation(readers).Draw(m.T, "order of the Queries") {
			for pr.need > 0 && !pr.done {
				m.interfere()
				rows, more := m.query(pr.key, pr.bounds, pr.need, l.forward())
				m.queries, m.rows = m.queries+1, m.rows+len(rows)
				pr.rows = append(pr.rows, rows...)
				pr.recordQuery(len(rows), more, l.forward())
			}
		}
		return nil
	})
}

// Orders change their status between any two queries while a client pages through the list. The
// pages contain each order that stays in the list exactly once. A page is sorted and stays within
// its bound. It shows no version older than the start of the page.
func TestPagingFindsOrdersThatChangeStatus(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &movingOrders{T: rt, shards: rapid.SampledFrom([]int{1, 1, 2, 3}).Draw(rt, "shards"), truncate: rapid.IntRange(0, 3).Draw(rt, "ends") == 0}
		m.chosen = commerce.Statuses()
		if rapid.Bool().Draw(rt, "some") {
			m.chosen = rapid.SliceOfNDistinct(rapid.SampledFrom(commerce.Statuses()), 1, 5, rapid.ID).Draw(rt, "statuses")
		}
		for range rapid.IntRange(0, 6).Draw(rt, "runs") {
			status := rapid.SampledFrom(commerce.Statuses()).Draw(rt, "status")
			for range rapid.IntRange(1, 12).Draw(rt, "length") {
				m.place(status)
			}
		}
		var in model.Range
		if rapid.Bool().Draw(rt, "ranged") {
			from := rapid.IntRange(0, len(m.orders)).Draw(rt, "from")
			in = model.Range{From: fmt.Sprintf("%04d", from), To: fmt.Sprintf("%04d", from+rapid.IntRange(1, 40).Draw(rt, "span"))}
		}
		for _, o := range m.orders {
			o.listed = slices.Contains(m.chosen, o.status) && o.id >= in.From && (in.To == "" || o.id < in.To)
		}
		page := PageRequest{Limit: rapid.IntRange(1, 12).Draw(rt, "limit"), FromEnd: rapid.Bool().Draw(rt, "fromEnd"), DetectMore: rapid.Bool().Draw(rt, "more")}

		found := map[string]bool{}
		for more := true; more; {
			l, err := (&Store{table: &table.Table{Codec: model.Codec{Layout: model.NewCurrentLayout(model.OneEra(m.shards))}}}).newListQuery(&model.Orders.AccessPattern, ListRequest{Statuses: NewStatusSet(m.chosen...), Page: page})
			if err != nil {
				rt.Fatal(err)
			}
			l.bounds = in
			before := map[string]int{}
			for _, o := range m.orders {
				before[o.id] = o.version
			}
			rows, err := m.read(l)
			if err != nil {
				rt.Fatal(err)
			}
			var most mergeCost
			for _, group := range l.groups {
				most = most.plus(maxMergeCost(len(group.Partitions), page))
			}
			if m.rounds > most.rounds || m.rows > most.rows || m.queries > most.requests && !m.truncate {
				rt.Fatalf("a page of %d took %d rounds, %d Queries and %d rows, want at most %+v", page.Limit, m.rounds, m.queries, m.rows, most)
			}
			ahead := func(a, b row) int {
				c := strings.Compare(a.position, b.position)
				if !l.forward() {
					return -c
				}
				return c
			}
			if !slices.IsSortedFunc(rows, ahead) || len(rows) > page.fetchLimit() {
				rt.Fatalf("a page of %d is %v", page.Limit, rows)
			}
			more = len(rows) == page.fetchLimit()
			for _, r := range rows[:min(len(rows), page.Limit)] {
				if found[r.position] {
					rt.Fatalf("the pages contain order %s twice", r.position)
				}
				found[r.position] = true
				if version := r.record.Number(model.AttrVersion); version < before[r.position] {
					rt.Fatalf("the page contains order %s in version %d, but the version was %d when the read of the page began", r.position, version, before[r.position])
				}
				if page.FromEnd {
					page.After, page.Before = "", r.position
				} else {
					page.After = r.position
				}
			}
		}
		for _, o := range m.orders {
			if o.listed && !found[o.id] {
				rt.Fatalf("order %s was in the list the whole time, but no page contains it", o.id)
			}
		}
	})
}
