package bulk_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/embedded"
	"github.com/ordergraph/ordergraph/internal/sampledata"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// newGenerator returns a generator of datasets with this number of orders.
func newGenerator(t testing.TB, orders int) *sampledata.Generator {
	t.Helper()
	shape := sampledata.DefaultShape()
	shape.Customers, shape.Products, shape.Orders = 20, 20, orders
	dataset, err := sampledata.NewGenerator(t.Context(), shape)
	if err != nil {
		t.Fatal(err)
	}
	return dataset
}

func loadAll(t testing.TB, store *dynamo.Store, datasets iter.Seq[commerce.Dataset]) bulk.LoadProgress {
	t.Helper()
	done, err := store.LoadAll(t.Context(), datasets, nil)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// For any number of datasets, LoadAll holds only a few that are not yet in the table.
func TestLoadAllHoldsFewDatasets(t *testing.T) {
	store := storetest.NewTable(t, embedded.New().Client(), dynamo.Options{})
	const datasets = 300
	taken, most := 0, 0
	loaded := bulk.LoadProgress{}
	// Only one goroutine at a time takes datasets and reports progress.
	all := func(yield func(commerce.Dataset) bool) {
		for n := range datasets {
			taken++
			most = max(most, taken-loaded.Records)
			at := time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC)
			if !yield(commerce.Dataset{Warehouses: []commerce.Warehouse{{ID: commerce.WarehouseID(at.Format("150405")), Name: "Hall", Version: 1}}}) {
				return
			}
		}
	}
	done, err := store.LoadAll(t.Context(), all, func(l bulk.LoadProgress) { loaded = l })
	if err != nil || done != (bulk.LoadProgress{Records: datasets}) || loaded != done {
		t.Errorf("loaded %+v, and progress reported %+v, of %d datasets: %v", done, loaded, datasets, err)
	}
	if most > 32 {
		t.Errorf("up to %d datasets were in memory at the same time", most)
	}
}

// If a dataset in the middle fails, Loaded counts the datasets before it and none after it, even if
// they are in the table. Loading again from there completes the table.
func TestFailedLoadReportsProgress(t *testing.T) {
	const parts, perPart, broken = 8, 25, 3
	dataset := newGenerator(t, parts*perPart)
	poisoned := "ORDER#" + string(dataset.OrderID(broken*perPart))
	others := make(chan struct{})
	refuse := errors.New("no more of this")
	db := embedded.New().Client()
	store := storetest.NewTable(t, db, dynamo.Options{Table: "generated"})
	loadAll(t, store, dataset.MasterData())

	failing := storetest.StoreWithClient(t, store, storetest.WithRequestHook(db, func(_ context.Context, in any) error {
		batch, ok := in.(*dynamodb.BatchWriteItemInput)
		if !ok {
			return nil
		}
		for _, request := range batch.RequestItems["generated"] {
			if request.PutRequest.Item["pk"].(*types.AttributeValueMemberS).Value == poisoned {
				<-others
				return refuse
			}
		}
		return nil
	}), dynamo.Options{})
	told := 0
	done, err := failing.LoadAll(t.Context(), dataset.Orders(0), func(bulk.LoadProgress) {
		if told++; told == parts-1 {
			close(others)
		}
	})
	if !errors.Is(err, refuse) || done.Orders != broken*perPart {
		t.Fatalf("%+v are loaded, want %d orders: %v", done, broken*perPart, err)
	}
	if rest := loadAll(t, store, dataset.Orders(done.Orders)); rest.Orders != (parts-broken)*perPart {
		t.Errorf("loaded the remaining %d orders after %d", rest.Orders, done.Orders)
	}
	storetest.AssertConsistent(t, db, "generated", 1)
}

// Generated datasets are consistent, also in one table, for any number of shards.
func TestGeneratedDatasetsInTables(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		const shards = 3
		table := storetest.TableName()
		store := storetest.NewTable(t, db, dynamo.Options{Table: table, Shards: shards})
		for _, orders := range []int{40, 41} {
			dataset := newGenerator(t, orders)
			loadAll(t, store, dataset.MasterData())
			loadAll(t, store, dataset.Orders(0))
			loadAll(t, store, dataset.Orders(30)) // loading again changes nothing
		}
		storetest.AssertConsistent(t, db, table, shards)
		page, err := dynamo.ReadPage(t.Context(), store, model.Orders, dynamo.ListRequest{Page: dynamo.PageRequest{Limit: 100}})
		if err != nil || len(page.Items) != 81 {
			t.Errorf("the order list has %d orders, want 81: %v", len(page.Items), err)
		}
	})
}

// LoadAll with an expired context loads nothing and returns the context's error.
func TestLoadAllWithExpiredContext(t *testing.T) {
	store := storetest.NewTable(t, embedded.New().Client(), dynamo.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if done, err := store.LoadAll(ctx, newGenerator(t, 10).Orders(0), nil); !errors.Is(err, context.Canceled) || done != (bulk.LoadProgress{}) {
		t.Errorf("%+v are loaded: %v", done, err)
	}
}

// Loading includes products that are already in the table in the counts of categories. It deletes
// categories that lose their last product.
func TestLoadingCountsCategories(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, commerce.Dataset{}, dynamo.Options{})
		for _, step := range []struct {
			categories map[string]string // by product
			want       string
		}{
			{map[string]string{"a": "X", "b": "X"}, "X 2"},
			{map[string]string{"a": "Y", "c": "X"}, "X 2 Y 1"},
			{map[string]string{"a": "Y", "c": "X"}, "X 2 Y 1"},
			{map[string]string{"a": "X"}, "X 3"},
		} {
			var datasets []commerce.Dataset
			for sku, category := range step.categories {
				datasets = append(datasets, commerce.Dataset{Products: []commerce.Product{{SKU: commerce.SKU(sku), Name: sku, Category: category, UnitPrice: storetest.USD("1.00"), Version: 1}}})
			}
			loadAll(t, r.Store, slices.Values(datasets))
			page, err := dynamo.ReadPage(t.Context(), r.Store, model.Categories, dynamo.ListRequest{Page: dynamo.PageRequest{Limit: 10}})
			var got []string
			for _, c := range page.Items {
				got = append(got, fmt.Sprint(c.Name, " ", c.ProductCount))
			}
			if strings.Join(got, " ") != step.want || err != nil {
				t.Errorf("after loading the categories %v, the list is %q, want %s; %v", step.categories, got, step.want, err)
			}
			r.CheckClean()
		}
	})
}
