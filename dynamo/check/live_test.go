package check_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/change"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/internal/test/faults"
	"github.com/ordergraph/ordergraph/internal/test/longtest"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// bump changes both records of an order as a mutation does, in one transaction.
func bump(r storetest.RawTable, order, customer, note string) {
	r.T.Helper()
	var actions []types.TransactWriteItem
	for _, k := range []storetest.Item{storetest.ItemKey("ORDER#"+order, "#METADATA"), storetest.ItemKey("CUSTOMER#"+customer, "ORDER#"+order)} {
		rec := r.Get(k["pk"].(*types.AttributeValueMemberS).Value, k["sk"].(*types.AttributeValueMemberS).Value)
		version := 0
		_, _ = fmt.Sscan(rec["version"].(*types.AttributeValueMemberN).Value, &version)
		rec["version"], rec["updatedAt"], rec["note"] = storetest.Num(fmt.Sprint(version+1)), storetest.Str(fmt.Sprintf("2026-02-01T00:00:%02d.000Z", version)), storetest.Str(note)
		actions = append(actions, types.TransactWriteItem{Put: &types.Put{TableName: &r.Name, Item: rec}})
	}
	if _, err := r.DB.TransactWriteItems(context.Background(), &dynamodb.TransactWriteItemsInput{TransactItems: actions}); err != nil {
		r.T.Fatal(err)
	}
}

// A record that changes between the verification and the repair keeps the change, and is repaired.
func TestRepairDoesNotOverwriteConcurrentChanges(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
		order := "ORDER#" + storetest.SmallOrderID(0)
		// The copy is wrong, and the order's own record changes.
		r.Set("CUSTOMER#c1", order, storetest.Item{"total": storetest.Num("1")})
		inconsistencies, summary := repairConcurrently(r, func() {
			bump(r, storetest.SmallOrderID(0), "c1", "kept")
		})
		if got := storetest.FormatKindCounts(inconsistencies); got != "order-total 1" || summary.UnrepairedCount() > 0 {
			t.Errorf("found %s, %d left:\n%+v", got, summary.UnrepairedCount(), inconsistencies)
		}
		for _, k := range [][2]string{{order, "#METADATA"}, {"CUSTOMER#c1", order}} {
			rec := r.Get(k[0], k[1])
			if storetest.CanonicalNumber(rec["total"]) != "15" || storetest.CanonicalNumber(rec["version"]) != "4" || rec["note"] == nil {
				t.Errorf("after the repair: %s", storetest.FormatItem(rec))
			}
		}
		r.CheckClean()
	})
}

// A record that changes before each attempt is never overwritten. The inconsistency is reported as not
// repaired.
func TestRepairOfAConstantlyChangingRecordGivesUp(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
		r.Set("EMPLOYEE#e1", "#METADATA", storetest.Item{"gsi1pk": storetest.Str("OTHER"), "note": storetest.Str("")})
		writes := 0
		inconsistencies, summary := r.WithHTTPHook(func(operation string, earlier int, _ string) *http.Response {
			if operation == "TransactWriteItems" {
				writes++
				r.Set("EMPLOYEE#e1", "#METADATA", storetest.Item{"note": storetest.Str(fmt.Sprint(earlier))})
			}
			return nil
		}).Check(check.Options{Repair: true})
		if got := storetest.FormatKindCounts(inconsistencies); got != "index-keys 1" || summary.UnrepairedCount() != 1 || writes < 3 {
			t.Errorf("found %s, %d left after %d attempts", got, summary.UnrepairedCount(), writes)
		}
		if rec := r.Get("EMPLOYEE#e1", "#METADATA"); storetest.KeyText(rec) == "" || rec["gsi1pk"].(*types.AttributeValueMemberS).Value != "OTHER" {
			t.Errorf("the record of the concurrent writer is %s", storetest.FormatItem(rec))
		}
	})
}

// A repair derives a record from another record. It adds nothing if that record has changed.
func TestRepairDependsOnTheTrustedRecord(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
		r.Delete("EMAIL#bob@example.com", "#METADATA")
		inconsistencies, summary := repairConcurrently(r, func() {
			for _, sk := range []string{"#METADATA", "NAME", "EMAIL"} {
				r.Set("CUSTOMER#c2", sk, storetest.Item{"email": storetest.Str("new@example.com")})
			}
			r.Set("CUSTOMER#c2", "EMAIL", storetest.Item{"gsi1sk": storetest.Str("new@example.com#c2")})
			r.Put(storetest.Item{"pk": storetest.Str("EMAIL#new@example.com"), "sk": storetest.Str("#METADATA"), "customerId": storetest.Str("c2")})
		})
		if got := storetest.FormatKindCounts(inconsistencies); got != "claim-missing 1" || summary.UnrepairedCount() > 0 {
			t.Errorf("found %s, %d left", got, summary.UnrepairedCount())
		}
		if rec := r.Get("EMAIL#bob@example.com", "#METADATA"); rec != nil {
			t.Errorf("the repair wrote the email claim %s, but no customer has this address", storetest.FormatItem(rec))
		}
		r.CheckClean()
	})
}

// A repair that adds a missing record does not replace a record that was added meanwhile.
func TestRepairDoesNotReplaceConcurrentlyAddedRecords(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
		copied := r.Get("CUSTOMER#c1", "ORDER#"+storetest.SmallOrderID(0))
		r.Delete("CUSTOMER#c1", "ORDER#"+storetest.SmallOrderID(0))
		copied["note"] = storetest.Str("kept")
		inconsistencies, summary := repairConcurrently(r, func() {
			r.Put(copied)
		})
		if got := storetest.FormatKindCounts(inconsistencies); got != "copy-missing 1" || summary.UnrepairedCount() > 0 {
			t.Errorf("found %s, %d left", got, summary.UnrepairedCount())
		}
		if rec := r.Get("CUSTOMER#c1", "ORDER#"+storetest.SmallOrderID(0)); rec["note"] == nil {
			t.Errorf("the repair replaced the record of the concurrent writer with %s", storetest.FormatItem(rec))
		}
		r.CheckClean()
	})
}

// A repair that deletes a record does not delete it if it has changed meanwhile, even if it has more
// attributes than a condition compares.
func TestRepairDoesNotDeleteConcurrentlyChangedRecords(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
		category := model.CategoryRecord(&model.KeyBuilder{}, commerce.Category{Name: "Empty", Version: 1})
		for i := range 125 {
			category[fmt.Sprintf("a%03d", i)] = storetest.Str("x")
		}
		r.Put(category)
		repairConcurrently(r, func() {
			if _, err := r.Store.CreateProduct(t.Context(), change.Caller{Name: "t"}, commerce.Product{SKU: "new", Name: "New", Category: "Empty", UnitPrice: storetest.USD("1")}); err != nil {
				t.Error(err)
			}
		})
		if n := storetest.Record(r.Get("CATEGORIES", "CATEGORY#Empty")).Int("productCount"); n != 1 {
			t.Errorf("the category has %d products, want 1", n)
		}
		r.CheckClean()
	})
}

// A mutation between two reads makes the records disagree. That is no inconsistency, however often it
// happens.
func TestMutationBetweenReadsIsNoInconsistency(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
		for _, c := range []struct{ mutations, unsettled int }{{2, 0}, {1000, 1}} {
			inconsistencies, summary := r.WithHTTPHook(func(operation string, earlier int, _ string) *http.Response {
				// The order's own record has been read, and its copy is read next.
				if operation == "BatchGetItem" && earlier < c.mutations {
					bump(r, storetest.SmallOrderID(0), "c1", "")
				}
				return nil
			}).Check(check.Options{Repair: true})
			if len(inconsistencies) > 0 || summary.Unverified != c.unsettled {
				t.Errorf("with %d mutations found %+v, %d unverified", c.mutations, inconsistencies, summary.Unverified)
			}
		}
		r.CheckClean()
	})
}

// The scan and its look-ups are eventually consistent. All later reads are consistent.
func TestCandidatesAreReadConsistently(t *testing.T) {
	r := storetest.NewRawTable(t, storetest.Engines()[0].Client(t), storetest.SmallDataset(t, 30), dynamo.Options{})
	r.Set("PRODUCT#p00", "#METADATA", storetest.Item{"available": storetest.Num("500")})
	r.Delete("CUSTOMER#c1", "ORDER#"+storetest.SmallOrderID(0))
	var reads []string
	r.WithHTTPHook(func(operation string, earlier int, body string) *http.Response {
		switch {
		case operation == "BatchGetItem" && earlier == 0, strings.Contains(body, "GSI1"), operation == "Scan":
			if strings.Contains(body, `"ConsistentRead":true`) {
				t.Errorf("the read is consistent: %s %s", operation, body)
			}
		default:
			reads = append(reads, operation)
			if !strings.Contains(body, `"ConsistentRead":true`) {
				t.Errorf("the read is not consistent: %s %s", operation, body)
			}
		}
		return nil
	}).Check(check.Options{})
	if len(reads) < 4 {
		t.Errorf("read %v", reads)
	}
}

// Stock that changes during every count is neither an inconsistency nor repaired.
func TestConstantlyChangingStockIsUnverified(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
		r.Set("PRODUCT#p00", "#METADATA", storetest.Item{"available": storetest.Num("500")})
		var unverified []check.UnverifiedRecord
		inconsistencies, summary := r.WithHTTPHook(func(operation string, earlier int, body string) *http.Response {
			if operation == "Query" && strings.Contains(body, "GSI1") {
				r.Set("PRODUCT#p00", "#METADATA", storetest.Item{"version": storetest.Num(fmt.Sprint(10 + earlier))})
			}
			return nil
		}).Check(check.Options{Repair: true, OnUnverified: func(u check.UnverifiedRecord) { unverified = append(unverified, u) }})
		want := []check.UnverifiedRecord{{PK: "PRODUCT#p00", SK: "#METADATA", Reason: "the product changed each time its reserved stock was recounted"}}
		if len(inconsistencies) > 0 || summary.Unverified != 1 || !slices.Equal(unverified, want) {
			t.Errorf("found %+v, %d unverified: %+v", inconsistencies, summary.Unverified, unverified)
		}
		if rec := r.Get("PRODUCT#p00", "#METADATA"); storetest.CanonicalNumber(rec["available"]) != "500" {
			t.Errorf("the repair changed the product to %s", storetest.FormatItem(rec))
		}
	})
}

// Sums over the index wait for the index, also with the default lag.
func TestSumsWaitForTheIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := storetest.NewRawTable(t, storetest.Engines()[0].Client(t), storetest.SmallDataset(t, 30), dynamo.Options{})
		r.Set("PRODUCT#p00", "#METADATA", storetest.Item{"available": storetest.Num("500")})
		r.Set("PRODUCT#p01", "#METADATA", storetest.Item{"available": storetest.Num("500")})
		for lag, want := range map[time.Duration]time.Duration{0: 2 * time.Second, 5 * time.Second: 10 * time.Second, check.NoIndexLag: 0} {
			began := time.Now()
			summary, err := r.Store.CheckRecords(t.Context(), check.Options{IndexLag: lag, Parallel: 4})
			if err != nil || summary.Found["stock-available"] != 2 {
				t.Errorf("found %v, %v", summary.Found, err)
			}
			// There are two reads, each after a wait for both products.
			if took := time.Since(began); took != want {
				t.Errorf("with a lag of %v it took %v, want %v", lag, took, want)
			}
		}
	})
}

// The cost of a recount of stock depends on the open orders, not on the other orders or on the
// number of products.
func TestARecountReadsOpenOrdersOnly(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		requests := func(delivered, products int) int {
			dataset := storetest.SmallDataset(t, 30)
			template := dataset.Orders[storetest.BigOrderNumber]
			// The order is open, and its items are in separate records.
			dataset.Orders[storetest.BigOrderNumber].Status = commerce.Confirmed
			dataset.Orders[storetest.BigOrderNumber].Events[1].Type, dataset.Orders[storetest.BigOrderNumber].Events[1].To = commerce.EventConfirmed, commerce.Confirmed
			for n := range delivered {
				late := template
				late.Status = commerce.Delivered
				late.ID = commerce.OrderID(storetest.ULIDAt(storetest.FirstOrderTime().Add(time.Duration(1000+n)*time.Hour), n))
				late.PlacedAt, _ = late.ID.Time()
				late.Lines = slices.Clone(template.Lines[:2])
				late.Events = []commerce.Event{{ID: commerce.EventID(late.ID), OrderID: late.ID, Type: commerce.EventImported, To: commerce.Delivered, At: late.PlacedAt, Actor: "c"}}
				dataset.Orders = append(dataset.Orders, late)
			}
			if err := derive.Complete(&dataset); err != nil {
				t.Fatal(err)
			}
			r := storetest.NewRawTable(t, db, dataset, dynamo.Options{})
			healthy := r.All()
			for i := range products {
				r.Set(fmt.Sprintf("PRODUCT#p%02d", i), "#METADATA", storetest.Item{"available": storetest.Num("-500")})
			}
			n := 0
			inconsistencies, _ := r.WithHTTPHook(func(operation string, _ int, body string) *http.Response {
				if strings.Contains(body, "GSI1") || operation == "BatchGetItem" && strings.Contains(body, `"ConsistentRead":true`) || strings.Contains(body, "ITEM#") {
					n++
				}
				return nil
			}).Check(check.Options{Repair: true})
			if got, want := storetest.FormatKindCounts(inconsistencies), fmt.Sprint("stock-available ", products); got != want {
				t.Errorf("found %s, want %s", got, want)
			}
			if changed := storetest.DifferingKeys(healthy, withoutStockRevisions(r.All())); len(changed) > 0 {
				t.Errorf("after the repair, these records differ from before the damage: %q", changed)
			}
			return n
		}
		delivered := longtest.Size(40, 150)
		few := requests(0, 1)
		t.Logf("recounting one product takes %d requests", few)
		if many := requests(delivered, 30); many != few || few == 0 {
			t.Errorf("with %d delivered orders, recounting 30 products takes %d requests; without them, recounting one product takes %d", delivered, many, few)
		}
	})
}

// Orders that were placed during the scan make its sums wrong. A recount corrects the sums.
func TestAnOrderPlacedDuringTheCheckIsNoInconsistency(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
		dataset := storetest.SmallDataset(t, 30)
		late := dataset.Orders[0]
		late.ID = commerce.OrderID(storetest.ULIDAt(storetest.FirstOrderTime().Add(100*24*3600e9), 500))
		late.PlacedAt, _ = late.ID.Time()
		late.UpdatedAt = late.PlacedAt
		late.Events = []commerce.Event{{ID: commerce.EventID(late.ID), OrderID: late.ID, Type: commerce.EventPlaced, To: commerce.Pending, At: late.PlacedAt, Actor: "c"}}
		late.Lines = late.Lines[:1]
		dataset.Orders = append(dataset.Orders, late)
		if err := derive.Complete(&dataset); err != nil {
			t.Fatal(err)
		}
		inconsistencies, summary := r.WithHTTPHook(func(operation string, earlier int, _ string) *http.Response {
			// The scan of this small table is a single request.
			if operation == "BatchGetItem" && earlier == 0 {
				storetest.LoadDataset(t, r.Store, dataset)
			}
			return nil
		}).Check(check.Options{Repair: true})
		if len(inconsistencies) > 0 || summary.Unverified > 0 {
			t.Errorf("found %+v, %d unverified", inconsistencies, summary.Unverified)
		}
		r.CheckClean()
	})
}

// reply is an error response of DynamoDB. reasons are the cancellation reasons of a transaction.
func reply(code string, reasons ...string) *http.Response {
	more := ""
	if len(reasons) > 0 {
		more = `,"CancellationReasons":[{"Code":"` + strings.Join(reasons, `"},{"Code":"`) + `"}]`
	}
	return &http.Response{
		StatusCode: http.StatusBadRequest, ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body:   io.NopCloser(strings.NewReader(`{"__type":"com.amazonaws.dynamodb.v20120810#` + code + `","message":"not now"` + more + `}`)),
	}
}

// A check and its repairs retry more transient errors in a row than the SDK does.
func TestCheckOutlastsTransientErrors(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
		r.Set("EMPLOYEE#e1", "#METADATA", storetest.Item{"gsi1pk": storetest.Str("OTHER")})
		r.Set("PRODUCT#p00", "#METADATA", storetest.Item{"available": storetest.Num("500")})
		failing, between := faults.WrapClient(db, faults.FailFirstRequests(append(faults.TransientKinds(), faults.TransactionConflict)...))
		r.Store = storetest.StoreWithClient(t, r.Store, failing, dynamo.Options{})
		inconsistencies, summary := r.Check(check.Options{Repair: true})
		if got := storetest.FormatKindCounts(inconsistencies); got != "index-keys 1, stock-available 1" || summary.UnrepairedCount() > 0 {
			t.Errorf("found %s, %d left", got, summary.UnrepairedCount())
		}
		for _, kind := range faults.TransientKinds() {
			if between.Counts()[kind] != 4 {
				t.Errorf("the injected faults are %v, want 4 of each kind: one for each of Scan, Query, BatchGetItem and TransactWriteItems", between.Counts())
			}
		}
		r.CheckClean()
	})
}

// A repair that DynamoDB rejects is reported with the reason, and the other repairs go on.
func TestRepairThatDynamoDBRejects(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]func() *http.Response{
		"not now":                     func() *http.Response { return reply("ValidationException") },
		"the records keep changing":   func() *http.Response { return reply("TransactionCanceledException", "TransactionConflict", "None") },
		"ItemCollectionSizeLimitExce": func() *http.Response { return reply("TransactionCanceledException", "ItemCollectionSizeLimitExceeded") },
	} {
		storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
			r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 30), dynamo.Options{})
			r.Set("EMPLOYEE#e1", "#METADATA", storetest.Item{"gsi1pk": storetest.Str("OTHER")})
			r.Delete("EMPLOYEE#e2", "NAME")
			inconsistencies, summary := r.WithHTTPHook(func(operation string, _ int, body string) *http.Response {
				if operation == "TransactWriteItems" && strings.Contains(body, "EMPLOYEE#e1") {
					return refusal()
				}
				return nil
			}).Check(check.Options{Repair: true})
			if got := storetest.FormatKindCounts(inconsistencies); got != "edge-missing 1, index-keys 1" || summary.UnrepairedCount() != 1 {
				t.Fatalf("found %s, %d left", got, summary.UnrepairedCount())
			}
			for _, d := range inconsistencies {
				if !d.Repaired && !strings.Contains(d.Detail, "the repair was refused: "+name) {
					t.Errorf("left: %+v, want %s", d, name)
				}
			}
		})
	}
}

func TestErrorsOfACheck(t *testing.T) {
	r := storetest.NewRawTable(t, storetest.Engines()[0].Client(t), storetest.SmallDataset(t, 30), dynamo.Options{})
	for _, c := range []struct {
		code string
		want error
	}{{"AccessDeniedException", table.ErrAccessDenied}, {"InternalServerError", table.ErrUnavailable}} {
		for _, operation := range []string{"Scan", "BatchGetItem"} {
			refusing := r.WithHTTPHook(func(o string, _ int, _ string) *http.Response {
				if o == operation {
					return reply(c.code)
				}
				return nil
			})
			if _, err := refusing.Store.CheckRecords(context.Background(), check.Options{Segments: 2}); !errors.Is(err, c.want) {
				t.Errorf("%s in %s: the error is %v, want %v", c.code, operation, err, c.want)
			}
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	stopping := r.WithHTTPHook(func(operation string, _ int, _ string) *http.Response {
		if operation == "BatchGetItem" {
			stop()
		}
		return nil
	})
	if _, err := stopping.Store.CheckRecords(ctx, check.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled check: the error is %v, want context.Canceled", err)
	}
	gone, err := dynamo.New(r.DB, dynamo.Options{Table: "nowhere"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gone.CheckRecords(context.Background(), check.Options{}); !errors.Is(err, table.ErrNoTable) {
		t.Errorf("a table that does not exist: the error is %v, want ErrNoTable", err)
	}
}
