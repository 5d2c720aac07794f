package loaders

import (
	"context"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// WithStock returns a product with its complete stock and order count. It reads the product's own
// record if p comes from a list that omits them, and the product's other buckets if it has any.
//
// It returns the errors of Complete and dynamo.Store.SumStockBuckets.
func (l *Loaders) WithStock(ctx context.Context, p *commerce.Product) (*commerce.Product, error) {
	own, err := Complete(ctx, l, model.ProductBySKU, p.SKU, p, p.Partial)
	if err != nil || own.StockBuckets <= 1 {
		return own, err
	}
	stock, err := l.StockBuckets.Load(ctx, dynamo.StockBucketsOf{SKU: own.SKU, Buckets: own.StockBuckets})
	return own.AddBuckets(stock), err
}
