package bulk

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// categoryCounter counts the products of each category while products are loaded. It is safe for
// concurrent use.
type categoryCounter struct {
	Transfers
	mu sync.Mutex
	// categoryOf maps the SKU of each loaded product to the product's category.
	categoryOf map[commerce.SKU]string
	// changed contains the categories whose products must be counted again. These are the categories
	// of the loaded products, before and after the load.
	changed map[string]bool
}

func (t Transfers) newCategoryCounter() *categoryCounter {
	return &categoryCounter{Transfers: t, categoryOf: map[commerce.SKU]string{}, changed: map[string]bool{}}
}

// add remembers the old and new categories of a dataset's products. It must be called before the
// products are written.
//
// Errors are wrapped by table.WrapError.
func (l *categoryCounter) add(ctx context.Context, dataset commerce.Dataset) error {
	b := l.table.KeyBuilder()
	keys := make([]model.Keys, len(dataset.Products))
	for i, p := range dataset.Products {
		keys[i] = model.ProductBySKU.Key(b, p.SKU)
	}
	if len(keys) == 0 || b.Err != nil {
		return b.Err
	}
	before, err := l.table.Consistent().GetMany(ctx, &model.ProductBySKU.AccessPattern, keys)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, p := range dataset.Products {
		l.categoryOf[p.SKU], l.changed[p.Category] = p.Category, true
		if previous, err := l.table.DecodeProduct(before[i]); err == nil && previous.Category != "" {
			l.changed[previous.Category] = true
		}
	}
	return nil
}

// write writes the category records after all products have been loaded. It returns the number of
// records written.
//
// Errors are wrapped by table.WrapError.
func (l *categoryCounter) write(ctx context.Context) (int, error) {
	counts := map[string]int{}
	// The index may not contain the loaded products yet, so count them in memory.
	for _, category := range l.categoryOf {
		counts[category]++
	}
	var records []model.Record
	for _, name := range slices.Sorted(maps.Keys(l.changed)) {
		others, err := l.countUnloadedProducts(ctx, name)
		if err != nil {
			return 0, err
		}
		b := l.table.KeyBuilder()
		r := model.CategoryRecord(b, commerce.Category{Name: name, ProductCount: counts[name] + others, Version: 1})
		if b.Err != nil {
			continue // other software may have written a category that is not valid in a key
		}
		if counts[name]+others > 0 {
			records = append(records, r)
			continue
		}
		if _, err := l.table.Client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &l.table.Name, Key: model.KeyOf(r).Attributes()}, l.table.BulkOptions); err != nil {
			return 0, table.WrapError("DeleteItem", r.KeyText(), err)
		}
	}
	return len(records), l.putAll(ctx, records)
}

// countUnloadedProducts counts the products that the table contains in a category. It excludes
// products that this load writes.
func (l *categoryCounter) countUnloadedProducts(ctx context.Context, name string) (int, error) {
	p := &model.Products.AccessPattern
	partition, err := p.PK.Build(name)
	if err != nil {
		return 0, nil // the category is not valid in a key, so the index has no list of its products
	}
	n, left := 0, model.Range{}
	for {
		found, more, err := l.table.Query(ctx, p, partition, string(p.SK), left, writeBatchSize*table.MaxParallel, true)
		if err != nil {
			return 0, err
		}
		sku := ""
		for _, r := range found {
			sku = model.FirstPlaceholderValue(p.SK+"{sku}", r.Text(model.AttrIndexSK))
			if _, loaded := l.categoryOf[commerce.SKU(sku)]; !loaded {
				n++
			}
		}
		if !more || len(found) == 0 {
			return n, nil
		}
		left = left.Remaining(sku, true)
	}
}
