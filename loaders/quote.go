package loaders

import (
	"context"
	"errors"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// Quote returns the price of an order with the given lines, at the current prices of the products.
//
// It returns the errors of dynamo.ReadRecords.
func (l *Loaders) Quote(ctx context.Context, lines []commerce.OrderLine) (*commerce.Quote, error) {
	products := make(map[commerce.SKU]*commerce.Product, len(lines))
	for _, line := range lines {
		product, err := RecordLoader(l, model.ProductBySKU).Load(ctx, line.SKU)
		switch {
		case errors.Is(err, commerce.ErrMalformed):
			product = &commerce.Product{SKU: line.SKU, Malformed: true}
		case err != nil && !errors.Is(err, commerce.ErrNotFound):
			return nil, err
		}
		products[line.SKU] = product
	}
	q := commerce.NewQuote(lines, products)
	return &q, nil
}
