package check_test

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// outdatedFixture is a table in which a customer's last event is older than the events of the
// orders.
type outdatedFixture struct {
	storetest.RawTable
	w             *storetest.CommitRecorder
	first, second commerce.OrderID
}

// newOutdatedFixture restores records to their state before the last two changes.
func newOutdatedFixture(t *testing.T, db *dynamodb.Client, back ...[2]string) outdatedFixture {
	t.Helper()
	watched, w := storetest.RecordCommits(db, false)
	o := outdatedFixture{RawTable: storetest.NewRawTable(t, watched, workload.Fixture{Customers: 1, Products: 1, Warehouses: 1, Stock: 1000}.Dataset(t), dynamo.Options{}), w: w}
	ids := storetest.PlaceOrders(t, o.Store, "c0", 2)
	o.first, o.second = ids[0], ids[1]
	names := strings.NewReplacer("$1", string(o.first), "$2", string(o.second))
	var before []storetest.Item
	for _, k := range back {
		before = append(before, o.Get(names.Replace(k[0]), names.Replace(k[1])))
	}
	for n, id := range []commerce.OrderID{o.second, o.first} {
		if err := storetest.ChangeAddress(o.Store, id, n); err != nil {
			t.Fatal(err)
		}
	}
	for _, rec := range before {
		o.Delete(rec["pk"].(*types.AttributeValueMemberS).Value, rec["sk"].(*types.AttributeValueMemberS).Value)
		o.Put(rec)
	}
	return o
}

// expectLastEvent verifies the ID of the customer's last event.
func (o outdatedFixture) expectLastEvent(id commerce.EventID) {
	o.T.Helper()
	last, event := o.Get("CUSTOMER#c0", "LAST_EVENT"), o.Get("ORDER#"+string(o.first), "EVENT#"+string(id))
	for name, v := range event {
		if name != "pk" && name != "sk" && name != "entity" && !reflect.DeepEqual(last[name], v) {
			o.T.Errorf("the last event is %s, in the timeline it is %s", storetest.FormatItem(last), storetest.FormatItem(event))
			return
		}
	}
}

func TestOutdatedLastEventIsRepaired(t *testing.T) {
	lastEvent := [2]string{"CUSTOMER#c0", "LAST_EVENT"}
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		for name, back := range map[string][][2]string{
			"the record":             {lastEvent},
			"the customer's records": {lastEvent, {"CUSTOMER#c0", "ORDER#$1"}, {"CUSTOMER#c0", "ORDER#$2"}},
			"an import of before":    {lastEvent, {"CUSTOMER#c0", "ORDER#$1"}, {"CUSTOMER#c0", "ORDER#$2"}, {"ORDER#$1", "#METADATA"}, {"ORDER#$2", "#METADATA"}},
		} {
			t.Run(name, func(t *testing.T) {
				o := newOutdatedFixture(t, db, back...)
				events := o.w.Events["c0"]
				last := commerce.EventID(events[3])
				for _, repair := range []bool{false, true} {
					inconsistencies, summary := o.Check(check.Options{Repair: repair})
					i := 0
					for i < len(inconsistencies) && inconsistencies[i].Kind != "last-event" {
						i++
					}
					if i == len(inconsistencies) || storetest.CountByKind(inconsistencies)["last-event"] != 1 || repair && summary.UnrepairedCount() > 0 {
						t.Fatalf("found %+v", inconsistencies)
					}
					if d := inconsistencies[i]; d.PK != "CUSTOMER#c0" || d.SK != "LAST_EVENT" || d.Repaired != repair || d.ByHand ||
						!strings.Contains(d.Detail, "the last event is "+events[1]) || !strings.Contains(d.Detail, "order "+string(o.first)+" has the newer event "+events[3]) {
						t.Errorf("found %+v", d)
					}
				}
				o.expectLastEvent(last)
				o.CheckClean()
				if err := storetest.ChangeAddress(o.Store, o.second, 7); err != nil {
					t.Fatal(err)
				}
				// The repair updates the record and writes no event.
				storetest.CheckEventOrder(t, "c0", slices.DeleteFunc(o.w.Events["c0"], func(id string) bool { return id == "" }))
				o.CheckClean()
			})
		}
	})
}

// A change that is committed between the check's reads and its repair stays the last event.
func TestRepairOfALastEventDuringAChange(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		o := newOutdatedFixture(t, db, [2]string{"CUSTOMER#c0", "LAST_EVENT"})
		between := o
		var once sync.Once
		next := db.Options().HTTPClient
		client := dynamodb.New(db.Options(), func(opts *dynamodb.Options) {
			opts.HTTPClient = storetest.HTTPFunc(func(r *http.Request) (*http.Response, error) {
				if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".TransactWriteItems") {
					once.Do(func() {
						if err := storetest.ChangeAddress(o.Store, o.first, 8); err != nil {
							t.Error(err)
						}
					})
				}
				return next.Do(r)
			})
		})
		var err error
		if between.Store, err = dynamo.New(client, dynamo.Options{Table: o.Name}); err != nil {
			t.Fatal(err)
		}
		if _, summary := between.Check(check.Options{Repair: true}); summary.UnrepairedCount() > 0 {
			t.Errorf("left %+v", summary)
		}
		events := o.w.Events["c0"]
		if len(events) != 5 {
			t.Fatalf("events %s, want 5", events)
		}
		o.expectLastEvent(commerce.EventID(events[4]))
		o.CheckClean()
	})
}

// Changes by other software do not make a last event outdated.
func TestLastEventsThatAreNotOutdated(t *testing.T) {
	t.Parallel()
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		o := newOutdatedFixture(t, db)
		first := "ORDER#" + string(o.first)
		for _, k := range [][2]string{{first, "#METADATA"}, {"CUSTOMER#c0", first}} {
			o.Set(k[0], k[1], storetest.Item{"updatedAt": storetest.Str("2030-01-01T00:00:00.000Z")})
		}
		for _, id := range []string{"evt-1", "f47ac10b-58cc-4372-a567-0e02b2c3d479", storetest.ULIDAt(storetest.FirstOrderTime().AddDate(200, 0, 0), 1)} {
			event := storetest.ItemKey(first, "EVENT#"+id)
			event["eventId"], event["orderId"], event["type"], event["createdAt"] = storetest.Str(id), storetest.Str(string(o.first)), storetest.Str("item_set"), storetest.Str("2026-01-01T00:00:00.000Z")
			o.Put(event)
		}
		o.CheckClean()
		if err := storetest.ChangeAddress(o.Store, o.second, 3); err != nil {
			t.Fatal(err)
		}
		o.CheckClean()
	})
}
