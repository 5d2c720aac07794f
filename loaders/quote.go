package loaders

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
)

// Quote returns the price of an order with the lines and adjustments of a request, at the current
// prices of the products.
//
// It returns the errors of dynamo.ReadRecords.
func (l *Loaders) Quote(ctx context.Context, request commerce.OrderRequest) (*commerce.Quote, error) {
	products := make(map[commerce.SKU]*commerce.Product, len(request.Lines))
	for _, line := range request.Lines {
		product, err := RecordLoader(l, model.ProductBySKU).Load(ctx, line.SKU)
		switch {
		case errors.Is(err, commerce.ErrMalformed):
			product = &commerce.Product{SKU: line.SKU, Malformed: true}
		case err != nil && !errors.Is(err, commerce.ErrNotFound):
			return nil, err
		}
		products[line.SKU] = product
	}
	if err := l.addBuckets(ctx, products); err != nil {
		return nil, err
	}
	q := commerce.NewQuote(request.Lines, request.Adjustments, products)
	return &q, nil
}

// CanShipQuote reports whether a warehouse has all pieces of a quote. If the quote has no total,
// because it is invalid or lacks a product, CanShipQuote returns false.
//
// It returns the errors of dynamo.ReadRecords.
func (l *Loaders) CanShipQuote(ctx context.Context, q *commerce.Quote, warehouseID string) (bool, error) {
	if q.Total == nil {
		return false, nil
	}
	return l.hasPieces(ctx, warehouseID, q.Pieces())
}

// hasPieces reports whether a warehouse has the given pieces of all products. A warehouse with a
// malformed ID, or without an inventory level of a product, does not have them.
func (l *Loaders) hasPieces(ctx context.Context, warehouseID string, pieces map[commerce.SKU]int) (bool, error) {
	warehouse, err := commerce.ParseID[commerce.WarehouseID](warehouseID)
	if err != nil {
		return false, nil //nolint:nilerr // no warehouse has such an ID
	}
	for _, sku := range slices.Sorted(maps.Keys(pieces)) {
		level, err := RecordLoader(l, model.LevelsOfLines).Load(ctx, model.InventoryLevelKey{SKU: sku, Warehouse: warehouse})
		switch {
		case errors.Is(err, commerce.ErrNotFound):
			return false, nil
		case err != nil:
			return false, err
		case level.Quantity < pieces[sku]:
			return false, nil
		}
	}
	return true, nil
}

// addBuckets replaces the products that have several stock buckets with copies that contain their
// complete stock.
func (l *Loaders) addBuckets(ctx context.Context, products map[commerce.SKU]*commerce.Product) error {
	var several []dynamo.StockBucketsOf
	for _, sku := range slices.Sorted(maps.Keys(products)) {
		if p := products[sku]; p != nil && p.StockBuckets > 1 {
			several = append(several, dynamo.StockBucketsOf{SKU: sku, Buckets: p.StockBuckets})
		}
	}
	stock, err := l.store.SumStockBuckets(ctx, several)
	if err != nil {
		return err
	}
	for i, of := range several {
		if err := stock[i].Err; err != nil {
			return err
		}
		products[of.SKU] = products[of.SKU].AddBuckets(stock[i].Value)
	}
	return nil
}
