package dynamo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/table"
	"github.com/ordergraph/ordergraph/internal/faults"
	"github.com/ordergraph/ordergraph/internal/longtest"
	"github.com/ordergraph/ordergraph/internal/storetest"
)

// others stands between a store and its engine, and does what others do at the same time.
type others struct {
	next dynamodb.HTTPClient

	mu sync.Mutex
	// before is called before each request of a name, "Query", with the number of earlier ones. It
	// may answer in DynamoDB's place.
	before func(operation string, earlier int, body string) *http.Response
	seen   map[string]int
}

func (o *others) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	o.mu.Lock()
	n := o.seen[operation]
	o.seen[operation]++
	var reply *http.Response
	if o.before != nil {
		reply = o.before(operation, n, string(body))
	}
	o.mu.Unlock()
	if reply != nil {
		return reply, nil
	}
	return o.next.Do(r)
}

// among returns the table as a store sees it that is not alone: before is called before each of its
// requests.
func (r rawTable) among(before func(operation string, earlier int, body string) *http.Response) rawTable {
	r.t.Helper()
	next := r.db.Options().HTTPClient
	if next == nil {
		next = http.DefaultClient
	}
	client := dynamodb.New(r.db.Options(), func(opts *dynamodb.Options) {
		opts.HTTPClient = &others{next: next, before: before, seen: map[string]int{}}
		opts.Retryer = aws.NopRetryer{}
	})
	store, err := dynamo.New(client, dynamo.Options{Table: r.name})
	if err != nil {
		r.t.Fatal(err)
	}
	r.store = store
	return r
}

// bump changes both records of an order as a mutation does, in one transaction.
func (r rawTable) bump(order, customer, note string) {
	r.t.Helper()
	var actions []types.TransactWriteItem
	for _, k := range []item{key("ORDER#"+order, "#METADATA"), key("CUSTOMER#"+customer, "ORDER#"+order)} {
		rec := r.get(k["pk"].(*types.AttributeValueMemberS).Value, k["sk"].(*types.AttributeValueMemberS).Value)
		version := 0
		_, _ = fmt.Sscan(rec["version"].(*types.AttributeValueMemberN).Value, &version)
		rec["version"], rec["updatedAt"], rec["note"] = number(fmt.Sprint(version+1)), text(fmt.Sprintf("2026-02-01T00:00:%02d.000Z", version)), text(note)
		actions = append(actions, types.TransactWriteItem{Put: &types.Put{TableName: &r.name, Item: rec}})
	}
	if _, err := r.db.TransactWriteItems(context.Background(), &dynamodb.TransactWriteItemsInput{TransactItems: actions}); err != nil {
		r.t.Fatal(err)
	}
}

// A record that changes between the verification and the repair keeps the change, and is repaired
// all the same.
func TestARepairDoesNotOverwriteWhatHasChanged(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		r := newRawTable(t, db, shop(t), dynamo.Options{})
		order := "ORDER#" + shopOrder(0)
		// The copy is what is wrong, the order's own record is what changes.
		r.set("CUSTOMER#c1", order, item{"total": number("1")})
		drifts, summary := r.among(func(operation string, earlier int, _ string) *http.Response {
			if operation == "TransactWriteItems" && earlier == 0 {
				r.bump(shopOrder(0), "c1", "kept")
			}
			return nil
		}).check(check.Options{Repair: true})
		if got := foundText(drifts); got != "order-total 1" || summary.Left() > 0 {
			t.Errorf("found %s, %d left:\n%+v", got, summary.Left(), drifts)
		}
		for _, k := range [][2]string{{order, "#METADATA"}, {"CUSTOMER#c1", order}} {
			rec := r.get(k[0], k[1])
			if plain(rec["total"]) != "15" || plain(rec["version"]) != "4" || rec["note"] == nil {
				t.Errorf("after the repair: %s", show(rec))
			}
		}
		r.checkClean()
	})
}

// Who always comes first is never overwritten; the drift is left and said to be.
func TestARepairGivesUpAgainstSomeoneWhoIsAlwaysFirst(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		r := newRawTable(t, db, shop(t), dynamo.Options{})
		r.set("EMPLOYEE#e1", "#METADATA", item{"gsi1pk": text("OTHER"), "note": text("")})
		writes := 0
		drifts, summary := r.among(func(operation string, earlier int, _ string) *http.Response {
			if operation == "TransactWriteItems" {
				writes++
				r.set("EMPLOYEE#e1", "#METADATA", item{"note": text(fmt.Sprint(earlier))})
			}
			return nil
		}).check(check.Options{Repair: true})
		if got := foundText(drifts); got != "index-keys 1" || summary.Left() != 1 || writes < 3 {
			t.Errorf("found %s, %d left after %d attempts", got, summary.Left(), writes)
		}
		if rec := r.get("EMPLOYEE#e1", "#METADATA"); keyText(rec) == "" || rec["gsi1pk"].(*types.AttributeValueMemberS).Value != "OTHER" {
			t.Errorf("the other's record is %s", show(rec))
		}
	})
}

// What a repair adds follows from a record, and is not added when that record has changed.
func TestARepairDependsOnTheRecordThatWasBelieved(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		r := newRawTable(t, db, shop(t), dynamo.Options{})
		r.drop("EMAIL#bob@example.com", "#METADATA")
		drifts, summary := r.among(func(operation string, earlier int, _ string) *http.Response {
			if operation == "TransactWriteItems" && earlier == 0 {
				r.set("CUSTOMER#c2", "#METADATA", item{"email": text("new@example.com")})
				r.put(item{"pk": text("EMAIL#new@example.com"), "sk": text("#METADATA"), "customerId": text("c2")})
			}
			return nil
		}).check(check.Options{Repair: true})
		if got := foundText(drifts); got != "email-claim 1" || summary.Left() > 0 {
			t.Errorf("found %s, %d left", got, summary.Left())
		}
		if rec := r.get("EMAIL#bob@example.com", "#METADATA"); rec != nil {
			t.Errorf("the repair wrote %s, which nobody has a right to", show(rec))
		}
		r.checkClean()
	})
}

// Records that are put where there were none do not replace what others put there meanwhile.
func TestARepairDoesNotReplaceWhatWasPutMeanwhile(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		r := newRawTable(t, db, shop(t), dynamo.Options{})
		copied := r.get("CUSTOMER#c1", "ORDER#"+shopOrder(0))
		r.drop("CUSTOMER#c1", "ORDER#"+shopOrder(0))
		copied["note"] = text("kept")
		drifts, summary := r.among(func(operation string, earlier int, _ string) *http.Response {
			if operation == "TransactWriteItems" && earlier == 0 {
				r.put(copied)
			}
			return nil
		}).check(check.Options{Repair: true})
		if got := foundText(drifts); got != "copy-missing 1" || summary.Left() > 0 {
			t.Errorf("found %s, %d left", got, summary.Left())
		}
		if rec := r.get("CUSTOMER#c1", "ORDER#"+shopOrder(0)); rec["note"] == nil {
			t.Errorf("the other's record was replaced by %s", show(rec))
		}
		r.checkClean()
	})
}

// A mutation between two reads of one reading makes them disagree. That is no drift, however often
// it happens.
func TestWhatDisagreesOnlyWhileItIsReadIsNoDrift(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		r := newRawTable(t, db, shop(t), dynamo.Options{})
		for _, c := range []struct{ mutations, unsettled int }{{2, 0}, {1000, 1}} {
			drifts, summary := r.among(func(operation string, earlier int, _ string) *http.Response {
				// The order's own record has been read, its copy is read next.
				if operation == "BatchGetItem" && earlier < c.mutations {
					r.bump(shopOrder(0), "c1", "")
				}
				return nil
			}).check(check.Options{Repair: true})
			if len(drifts) > 0 || summary.Unsettled != c.unsettled {
				t.Errorf("with %d mutations found %+v, %d unsettled", c.mutations, drifts, summary.Unsettled)
			}
		}
		r.checkClean()
	})
}

// A suspicion is cheap, what is found is certain: after the scan and its look-ups everything is
// read consistently.
func TestWhatIsSuspiciousIsReadConsistently(t *testing.T) {
	r := newRawTable(t, storetest.Engines()[0].Client(t), shop(t), dynamo.Options{})
	r.set("PRODUCT#p00", "#METADATA", item{"available": number("500")})
	r.drop("CUSTOMER#c1", "ORDER#"+shopOrder(0))
	var reads []string
	r.among(func(operation string, earlier int, body string) *http.Response {
		switch {
		case operation == "BatchGetItem" && earlier == 0, strings.Contains(body, "GSI1"), operation == "Scan":
			if strings.Contains(body, `"ConsistentRead":true`) {
				t.Errorf("consistent: %s %s", operation, body)
			}
		default:
			reads = append(reads, operation)
			if !strings.Contains(body, `"ConsistentRead":true`) {
				t.Errorf("not consistent: %s %s", operation, body)
			}
		}
		return nil
	}).check(check.Options{})
	if len(reads) < 4 {
		t.Errorf("read %v", reads)
	}
}

// Stock that changes as fast as it is counted is neither drift nor repaired.
func TestStockThatKeepsChangingIsUnsettled(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		r := newRawTable(t, db, shop(t), dynamo.Options{})
		r.set("PRODUCT#p00", "#METADATA", item{"available": number("500")})
		var told []check.Unsettled
		drifts, summary := r.among(func(operation string, earlier int, body string) *http.Response {
			if operation == "Query" && strings.Contains(body, "GSI1") {
				r.set("PRODUCT#p00", "#METADATA", item{"version": number(fmt.Sprint(10 + earlier))})
			}
			return nil
		}).check(check.Options{Repair: true, Unsettled: func(u check.Unsettled) { told = append(told, u) }})
		want := []check.Unsettled{{PK: "PRODUCT#p00", SK: "#METADATA", Reason: "the product changed each time that its orders were summed"}}
		if len(drifts) > 0 || summary.Unsettled != 1 || !slices.Equal(told, want) {
			t.Errorf("found %+v, %d unsettled: %+v", drifts, summary.Unsettled, told)
		}
		if rec := r.get("PRODUCT#p00", "#METADATA"); plain(rec["available"]) != "500" {
			t.Errorf("it was repaired to %s", show(rec))
		}
	})
}

// Sums over the index wait for it, also where nobody says for how long.
func TestSumsWaitForTheIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRawTable(t, storetest.Engines()[0].Client(t), shop(t), dynamo.Options{})
		r.set("PRODUCT#p00", "#METADATA", item{"available": number("500")})
		r.set("PRODUCT#p01", "#METADATA", item{"available": number("500")})
		for lag, want := range map[time.Duration]time.Duration{0: 2 * time.Second, 5 * time.Second: 10 * time.Second, check.NoIndexLag: 0} {
			began := time.Now()
			summary, err := r.store.CheckRecords(t.Context(), check.Options{IndexLag: lag, Parallel: 4})
			if err != nil || summary.Found["stock-available"] != 2 {
				t.Errorf("found %v, %v", summary.Found, err)
			}
			// Two readings, each of them after a wait for both products.
			if took := time.Since(began); took != want {
				t.Errorf("with a lag of %v it took %v, want %v", lag, took, want)
			}
		}
	})
}

// What it costs to recount stock depends on the orders that are open, not on those that are done,
// nor on how many products are recounted.
func TestARecountReadsOpenOrdersOnly(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		requests := func(delivered, products int) int {
			book := shop(t)
			template := book.Orders[bigOrder]
			// Open, with its items in records of their own.
			book.Orders[bigOrder].Status = commerce.Confirmed
			book.Orders[bigOrder].Events[1].Type, book.Orders[bigOrder].Events[1].To = commerce.EventConfirmed, commerce.Confirmed
			for n := range delivered {
				late := template
				late.Status = commerce.Delivered
				late.ID = commerce.OrderID(ulidAt(start.Add(time.Duration(1000+n)*time.Hour), n))
				late.PlacedAt, _ = late.ID.Time()
				late.Lines = slices.Clone(template.Lines[:2])
				late.Events = []commerce.Event{{ID: commerce.EventID(late.ID), OrderID: late.ID, Type: commerce.EventImported, To: commerce.Delivered, At: late.PlacedAt, Actor: "c"}}
				book.Orders = append(book.Orders, late)
			}
			if err := book.Settle(); err != nil {
				t.Fatal(err)
			}
			r := newRawTable(t, db, book, dynamo.Options{})
			healthy := r.all()
			for i := range products {
				r.set(fmt.Sprintf("PRODUCT#p%02d", i), "#METADATA", item{"available": number("-500")})
			}
			n := 0
			drifts, _ := r.among(func(operation string, _ int, body string) *http.Response {
				if strings.Contains(body, "GSI1") || operation == "BatchGetItem" && strings.Contains(body, `"ConsistentRead":true`) || strings.Contains(body, "ITEM#") {
					n++
				}
				return nil
			}).check(check.Options{Repair: true})
			if got, want := foundText(drifts), fmt.Sprint("stock-available ", products); got != want {
				t.Errorf("found %s, want %s", got, want)
			}
			if changed := differing(healthy, unrevised(r.all())); len(changed) > 0 {
				t.Errorf("after the repair %q are others", changed)
			}
			return n
		}
		delivered := longtest.Size(40, 150)
		few := requests(0, 1)
		t.Logf("%d requests recount a product", few)
		if many := requests(delivered, 30); many != few || few == 0 {
			t.Errorf("among %d delivered orders %d requests recount 30 products, without them %d recount one", delivered, many, few)
		}
	})
}

// Orders that were placed while the table was read make sums over it wrong; counting again tells.
func TestAnOrderPlacedDuringTheCheckIsNoDrift(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		r := newRawTable(t, db, shop(t), dynamo.Options{})
		book := shop(t)
		late := book.Orders[0]
		late.ID = commerce.OrderID(ulidAt(start.Add(100*24*3600e9), 500))
		late.PlacedAt, _ = late.ID.Time()
		late.UpdatedAt = late.PlacedAt
		late.Events = []commerce.Event{{ID: commerce.EventID(late.ID), OrderID: late.ID, Type: commerce.EventPlaced, To: commerce.Pending, At: late.PlacedAt, Actor: "c"}}
		late.Lines = late.Lines[:1]
		book.Orders = append(book.Orders, late)
		if err := book.Settle(); err != nil {
			t.Fatal(err)
		}
		drifts, summary := r.among(func(operation string, earlier int, _ string) *http.Response {
			// The scan of this small table is a single request.
			if operation == "BatchGetItem" && earlier == 0 {
				storetest.Load(t, r.store, book)
			}
			return nil
		}).check(check.Options{Repair: true})
		if len(drifts) > 0 || summary.Unsettled > 0 {
			t.Errorf("found %+v, %d unsettled", drifts, summary.Unsettled)
		}
		r.checkClean()
	})
}

// reply is an answer of DynamoDB's that is an error; reasons are those of a transaction.
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

// A check and its repairs outlast faults that pass, and many more in a row than the SDK does.
func TestAnHourOfCheckingDoesNotEndWithAFault(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
		r := newRawTable(t, db, shop(t), dynamo.Options{})
		r.set("EMPLOYEE#e1", "#METADATA", item{"gsi1pk": text("OTHER")})
		r.set("PRODUCT#p00", "#METADATA", item{"available": number("500")})
		failing, between := faults.Between(db, atFirst(append(passingFaults(), faults.Conflict)...))
		r.store = through(t, r.store, failing, dynamo.Options{})
		drifts, summary := r.check(check.Options{Repair: true})
		if got := foundText(drifts); got != "index-keys 1, stock-available 1" || summary.Left() > 0 {
			t.Errorf("found %s, %d left", got, summary.Left())
		}
		for _, kind := range passingFaults() {
			if between.Counts()[kind] != 4 {
				t.Errorf("Scan, Query, BatchGetItem and TransactWriteItems met %v", between.Counts())
			}
		}
		r.checkClean()
	})
}

// What DynamoDB does not take is left, with its reason, and stops nothing else.
func TestARepairThatDynamoDBRefuses(t *testing.T) {
	for name, refusal := range map[string]func() *http.Response{
		"not now":                     func() *http.Response { return reply("ValidationException") },
		"the records keep changing":   func() *http.Response { return reply("TransactionCanceledException", "TransactionConflict", "None") },
		"ItemCollectionSizeLimitExce": func() *http.Response { return reply("TransactionCanceledException", "ItemCollectionSizeLimitExceeded") },
	} {
		storetest.Each(t, func(t *testing.T, db *dynamodb.Client) {
			r := newRawTable(t, db, shop(t), dynamo.Options{})
			r.set("EMPLOYEE#e1", "#METADATA", item{"gsi1pk": text("OTHER")})
			r.drop("EMPLOYEE#e2", "NAME")
			drifts, summary := r.among(func(operation string, _ int, body string) *http.Response {
				if operation == "TransactWriteItems" && strings.Contains(body, "EMPLOYEE#e1") {
					return refusal()
				}
				return nil
			}).check(check.Options{Repair: true})
			if got := foundText(drifts); got != "edge-missing 1, index-keys 1" || summary.Left() != 1 {
				t.Fatalf("found %s, %d left", got, summary.Left())
			}
			for _, d := range drifts {
				if !d.Repaired && !strings.Contains(d.Detail, "the repair was refused: "+name) {
					t.Errorf("left: %+v, want %s", d, name)
				}
			}
		})
	}
}

func TestErrorsOfACheck(t *testing.T) {
	r := newRawTable(t, storetest.Engines()[0].Client(t), shop(t), dynamo.Options{})
	for _, c := range []struct {
		code string
		want error
	}{{"AccessDeniedException", table.ErrAccessDenied}, {"InternalServerError", table.ErrUnavailable}} {
		for _, operation := range []string{"Scan", "BatchGetItem"} {
			refusing := r.among(func(o string, _ int, _ string) *http.Response {
				if o == operation {
					return reply(c.code)
				}
				return nil
			})
			if _, err := refusing.store.CheckRecords(context.Background(), check.Options{Segments: 2}); !errors.Is(err, c.want) {
				t.Errorf("%s of %s: %v, want %v", c.code, operation, err, c.want)
			}
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	stopping := r.among(func(operation string, _ int, _ string) *http.Response {
		if operation == "BatchGetItem" {
			stop()
		}
		return nil
	})
	if _, err := stopping.store.CheckRecords(ctx, check.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a check that is stopped: %v", err)
	}
	gone, err := dynamo.New(r.db, dynamo.Options{Table: "nowhere"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gone.CheckRecords(context.Background(), check.Options{}); !errors.Is(err, table.ErrNoTable) {
		t.Errorf("a table that is not there: %v", err)
	}
}
