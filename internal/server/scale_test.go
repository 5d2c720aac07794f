package server_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/markdown"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/price"
	"github.com/ordergraph/ordergraph/internal/test/golden"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

const scaleDocs = "../../docs/scale.md"

// usable is the part of a partition's capacity that docs/scale.md plans to use.
const usable = 0.8

// docs/scale.md contains the shards that a number of orders a second needs, the largest part of the
// orders that other keys can take, and the price.
func TestGoldenScale(t *testing.T) {
	total, units := orderUnits(t)
	month := int64(30 * 24 * time.Hour / time.Second)
	cells := [][]string{{"orders a second", "shards", "customer", "product", "account rep", "category", "warehouse", "dollars a month"}}
	for _, rate := range []int64{1, 10, 100, 1_000, 10_000} {
		most := func(units float64) float64 { return usable * model.PartitionWriteUnits / units / float64(rate) }
		shards := 1
		for most(total.table["ORDER_COUNTS"])*float64(shards) < 1 {
			shards *= 2
		}
		row := []string{strconv.FormatInt(rate, 10), strconv.Itoa(shards)}
		for _, units := range []float64{total.table["CUSTOMER#ann"], total.table["PRODUCT#mug"], total.index["REP#rita"], total.index["CATEGORY#Kitchen"], total.index["WAREHOUSE#north"]} {
			row = append(row, fmt.Sprintf("%.3g %%", min(100, 100*most(units))))
		}
		cells = append(cells, append(row, price.Standard().Dollars(units, rate*month).FloatString(0)))
	}
	golden.CheckSection(t, scaleDocs, "scale", markdown.Table(cells))
}

// docs/scale.md contains the cost of pages with 100 records, for some numbers of shards.
func TestGoldenScaleOfReads(t *testing.T) {
	dataset := smallDataset(t)
	for i := range dataset.Levels {
		dataset.Levels[i].Quantity = 1000
	}
	for i := range 600 {
		at := opening.Add(-time.Duration(i) * time.Minute)
		id, _ := commerce.MinULIDAt(at)
		dataset.Orders = append(dataset.Orders, commerce.OrderWithItems{
			Order: commerce.Order{ID: commerce.OrderID(id), CustomerID: "ann", Status: commerce.Statuses()[i%len(commerce.Statuses())], PlacedAt: at, UpdatedAt: at},
			Lines: []commerce.LineItem{{SKU: "mug", Name: "Mug", Quantity: 1, UnitPrice: dataset.Products[0].UnitPrice}},
		})
		customer := dataset.Customers[0]
		customer.ID, customer.Email, customer.CreatedAt = commerce.CustomerID(fmt.Sprint("c", i)), fmt.Sprintf("c%d@example.com", i), at
		dataset.Customers = append(dataset.Customers, customer)
	}
	fields := []string{"orders(first: 100) { nodes { id } }", "ordersByStatus(status: PENDING, first: 100) { nodes { id } }", "customers(first: 100) { nodes { id } }", "orderCounts { count }"}
	cells := [][]string{{"field"}}
	for _, field := range fields {
		cells = append(cells, []string{markdown.CodeCell(field)})
	}
	for _, shards := range []int{1, 16, 128} {
		s := newShardedFixture(t, storetest.Engines()[0].Client(t), dataset, shards)
		cells[0] = append(cells[0], fmt.Sprint("shards: ", shards))
		for i, field := range fields {
			cost := s.read(t, nil, "{ %s }", field).Totals
			cells[i+1] = append(cells[i+1], fmt.Sprintf("%d Queries, %v units", cost.Requests, cost.ReadUnits))
		}
	}
	golden.CheckSection(t, scaleDocs, "reads", markdown.Table(slices.Clip(cells)))
}
