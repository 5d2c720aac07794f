package check_test

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// related returns the partition keys of the records that may derive from a partition of the
// dataset, including the partition.
func related(dataset commerce.Dataset, pk string) []string {
	all := []string{pk}
	customer := func(c commerce.Customer) {
		all = append(all, "CUSTOMER#"+string(c.ID), "EMAIL#"+c.Email)
	}
	order := func(o commerce.OrderWithItems) {
		all = append(all, "ORDER#"+string(o.ID), "EMPLOYEE#"+string(o.AccountRepID))
		for _, line := range o.Lines {
			all = append(all, "PRODUCT#"+string(line.SKU))
		}
	}
	for _, c := range dataset.Customers {
		if pk == "CUSTOMER#"+string(c.ID) || pk == "EMAIL#"+c.Email {
			customer(c)
			for _, o := range dataset.Orders {
				if o.CustomerID == c.ID {
					order(o)
				}
			}
		}
	}
	for _, o := range dataset.Orders {
		if pk != "ORDER#"+string(o.ID) {
			continue
		}
		order(o)
		for _, c := range dataset.Customers {
			if c.ID == o.CustomerID {
				customer(c)
			}
		}
	}
	return all
}

// Records are lost, changed or doubled anywhere. One repair leaves only the inconsistencies that the
// operator must repair, and changes only related records. Unreadable attributes stay unchanged.
func TestAnyDamageIsRepairedByOneCheck(t *testing.T) {
	t.Parallel()
	byHand := map[string]bool{}
	for _, kind := range check.Kinds() {
		byHand[kind.Name] = kind.ByHand
	}
	values := []types.AttributeValue{
		nil, storetest.Str("zzz"), storetest.Str("pending"), storetest.Str("shipped"), storetest.Str("cancelled"), storetest.Str(""), storetest.Num("0"), storetest.Num("7"), storetest.Num("0.5"),
		storetest.Str("2030-01-01T00:00:00.000Z"), &types.AttributeValueMemberL{Value: []types.AttributeValue{storetest.Str("x")}},
		&types.AttributeValueMemberM{Value: storetest.Item{"x": storetest.Str("y")}}, &types.AttributeValueMemberBOOL{Value: true}, &types.AttributeValueMemberNULL{Value: true},
	}
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		storetest.CheckProperty(t, func(rt *rapid.T) {
			random := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "dataset"), 0))
			dataset := largeDataset(t, random, rapid.IntRange(2, 8).Draw(rt, "orders"))
			r := storetest.NewRawTable(t, db, dataset, dynamo.Options{Shards: rapid.IntRange(1, 2).Draw(rt, "shards")})
			lasts := map[commerce.CustomerID]commerce.EventID{}
			for _, o := range dataset.Orders {
				if last := o.Events[len(o.Events)-1]; last.ID > lasts[o.CustomerID] {
					lasts[o.CustomerID] = last.ID
					r.Put(lastEvent(r, string(o.CustomerID), "ORDER#"+string(o.ID), "EVENT#"+string(last.ID), nil))
				}
			}
			r.Check(check.Options{Repair: true}) // count the open orders
			healthy := r.All()
			records := maps.Clone(healthy)
			touched := map[string]bool{}
			for range rapid.IntRange(1, 6).Draw(rt, "damages") {
				rec := maps.Clone(records[rapid.SampledFrom(slices.Sorted(maps.Keys(records))).Draw(rt, "record")])
				pk, sk, _ := strings.Cut(storetest.KeyText(rec), " ")
				for _, k := range related(dataset, pk) {
					touched[k] = true
				}
				switch rapid.IntRange(0, 3).Draw(rt, "kind") {
				case 0:
					r.Delete(pk, sk)
					delete(records, storetest.KeyText(rec))
				case 1:
					// The key is the same record of another ID, which may exist.
					kind, _, _ := strings.Cut(pk, "#")
					others := []string{kind + "#other"}
					for _, other := range slices.Sorted(maps.Keys(records)) {
						if other, _, _ := strings.Cut(other, " "); strings.HasPrefix(other, kind+"#") {
							others = append(others, other)
						}
					}
					other := rapid.SampledFrom(others).Draw(rt, "other")
					rec["pk"] = storetest.Str(other)
					for _, k := range related(dataset, other) {
						touched[k] = true
					}
					r.Put(rec)
					records[storetest.KeyText(rec)] = rec
				default:
					name := rapid.SampledFrom(slices.Sorted(maps.Keys(rec))).Draw(rt, "attribute")
					value := rapid.SampledFrom(values).Draw(rt, "value")
					switch _, isText := value.(*types.AttributeValueMemberS); {
					case name == "pk" || name == "sk":
						continue
					case strings.HasPrefix(name, "gsi1") && value != nil && (!isText || value.(*types.AttributeValueMemberS).Value == ""):
						continue // no engine accepts it
					}
					r.Set(pk, sk, storetest.Item{name: value})
					records[storetest.KeyText(rec)] = r.Get(pk, sk)
				}
			}
			damaged := r.All()
			inconsistencies, summary := r.Check(check.Options{Repair: true, Segments: 2})
			again, left := r.Check(check.Options{})
			for _, d := range again {
				if !byHand[d.Kind] {
					rt.Errorf("left after the repair: %+v", d)
				}
			}
			if summary.UnrepairedCount() != left.UnrepairedCount() {
				rt.Errorf("the repair reports %d remaining inconsistencies, the next check %d", summary.UnrepairedCount(), left.UnrepairedCount())
			}
			if rt.Failed() {
				for _, k := range storetest.DifferingKeys(healthy, records) {
					rt.Logf("damaged record: %s\nbefore the damage: %s", storetest.FormatItem(records[k]), storetest.FormatItem(healthy[k]))
				}
				rt.Logf("repaired: %+v", inconsistencies)
			}
			repaired := r.All()
			for k, rec := range damaged {
				for name, value := range rec {
					// The model has no attribute of that type. A customer's last event is replaced with every
					// event that is written.
					if _, unreadable := value.(*types.AttributeValueMemberNULL); unreadable && !strings.HasSuffix(k, " LAST_EVENT") && !reflect.DeepEqual(repaired[k][name], value) {
						rt.Errorf("the repair changed the unreadable attribute %s of %s: %s", name, k, storetest.FormatItem(repaired[k]))
					}
				}
			}
			for _, k := range storetest.DifferingKeys(healthy, repaired) {
				if pk, _, _ := strings.Cut(k, " "); !touched[pk] && !strings.HasPrefix(pk, "ORDER_COUNTS") && pk != "CATEGORIES" && !strings.HasPrefix(pk, "WAREHOUSE#") && healthy[k] != nil {
					rt.Errorf("the repair changed %s, which is in no damaged partition", k)
				}
			}
			r.DeleteTable()
		})
	})
}
