package dynamo_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/bulk"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

func addTags(t testing.TB, store *dynamo.Store, order int, tags ...string) {
	t.Helper()
	if _, err := store.TagOrder(t.Context(), sam, commerce.TagsChange{OrderID: commerce.OrderID(storetest.SmallOrderID(order)), Add: tags}); err != nil {
		t.Fatal(err)
	}
}

// tagged returns a page of the orders with a tag.
func tagged(t testing.TB, store *dynamo.Store, tag string, limit int) (ids []string, hasNext bool) {
	t.Helper()
	page, err := dynamo.ReadPage(t.Context(), store, model.OrdersByTag, dynamo.ListRequest{PartitionValue: tag, Page: dynamo.PageRequest{Limit: limit, DetectMore: true}})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range page.Items {
		ids = append(ids, string(o.ID))
	}
	return ids, page.HasNext
}

// A check finds and repairs each wrong record of a tag. An import restores the lists of tags, also
// with another number of shards.
func TestDamagedTags(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 4), dynamo.Options{})
		for order := range 3 {
			addTags(t, r.Store, order, "gift", "vip")
		}
		r.Check(check.Options{Repair: true, IndexLag: check.NoIndexLag}) // it counts the open orders
		before := r.All()
		key := "ORDER#" + storetest.SmallOrderID(0)
		edge := r.Get(key, "WITH_TAG#vip")
		other := model.Record{}
		for name, v := range edge {
			other[name] = v
		}
		other["sk"], other["tag"], other["gsi1pk"] = storetest.Str("WITH_TAG#fraud"), storetest.Str("fraud"), storetest.Str("TAG#fraud")
		list := func(tags ...string) storetest.Item { return storetest.Item{"tags": model.TextListValue(tags)} }
		for name, damage := range map[string]struct {
			do   func()
			kind string
		}{
			"no edge":         {func() { r.Delete(key, "WITH_TAG#vip") }, "edge-missing"},
			"further edge":    {func() { r.Put(storetest.Item(other)) }, "orphan-edge"},
			"wrong index key": {func() { r.Set(key, "WITH_TAG#vip", storetest.Item{"gsi1pk": storetest.Str("TAG#gift")}) }, "index-keys"},
			"unsorted":        {func() { r.Set(key, "#METADATA", list("vip", " gift", "vip")) }, "order-records-differ"},
		} {
			damage.do()
			found, _ := r.Check(check.Options{Repair: true, IndexLag: check.NoIndexLag})
			if after := r.All(); len(found) != 1 || found[0].Kind != damage.kind || len(storetest.DifferingKeys(after, before)) > 0 {
				t.Errorf("%s: the check found %v, and %v differ", name, found, storetest.DifferingKeys(after, before))
			}
		}
		// If the list cannot be read, the records of its tags may be right.
		for _, unreadable := range []storetest.Item{{"tags": storetest.Str("vip")}, list("gift", "v#i#p"), list("gift", "")} {
			r.Set(key, "#METADATA", unreadable)
			found, _ := r.Check(check.Options{Repair: true, IndexLag: check.NoIndexLag})
			if len(found) == 0 || r.Get(key, "WITH_TAG#vip") == nil || !model.EqualValues(r.Get(key, "#METADATA")["tags"], unreadable["tags"]) {
				t.Errorf("an unreadable list: the check found %v", found)
			}
			readOrder(t, r.Store, commerce.OrderID(storetest.SmallOrderID(0)))
		}
		r.Set(key, "#METADATA", list("gift", "vip"))
		r.CheckClean()

		again := storetest.NewRawTable(t, db, commerce.Dataset{}, dynamo.Options{Shards: 4})
		if _, err := again.Store.Import(t.Context(), strings.NewReader(strings.Join(storetest.Export(t, r.Store, 1), "")), bulk.ImportOptions{}); err != nil {
			t.Fatal(err)
		}
		again.CheckClean()
		for _, store := range []*dynamo.Store{r.Store, again.Store} {
			if got, _ := tagged(t, store, "vip", 9); !slices.Equal(got, []string{storetest.SmallOrderID(2), storetest.SmallOrderID(1), storetest.SmallOrderID(0)}) {
				t.Errorf("the orders with the tag are %v", got)
			}
		}
	})
}

// A page leaves out an order that has lost the tag or disappeared since the index was read. Paging
// continues after it.
func TestListOfATagLeavesOutOtherOrders(t *testing.T) {
	r := storetest.NewRawTable(t, storetest.Engines()[0].Client(t), storetest.SmallDataset(t, 5), dynamo.Options{})
	for order := range 5 {
		addTags(t, r.Store, order, "vip")
	}
	r.Set("ORDER#"+storetest.SmallOrderID(4), "#METADATA", storetest.Item{"tags": model.TextListValue([]string{"other"})})
	r.Delete("ORDER#"+storetest.SmallOrderID(3), "#METADATA")
	r.Put(storetest.Item{"pk": storetest.Str("OTHER"), "sk": storetest.Str("WITH_TAG#vip"), "gsi1pk": storetest.Str("TAG#vip"), "gsi1sk": storetest.Str("ORDER#" + storetest.SmallOrderID(2) + "X")})
	request := dynamo.ListRequest{PartitionValue: "vip", Page: dynamo.PageRequest{Limit: 2, DetectMore: true}}
	var pages []string
	for more := true; more; {
		page, err := dynamo.ReadPage(t.Context(), r.Store, model.OrdersByTag, request)
		if err != nil || len(page.Malformed) > 0 {
			t.Fatal(err, page.Malformed)
		}
		text := ""
		for _, o := range page.Items {
			text += fmt.Sprint(slices.IndexFunc([]int{0, 1, 2, 3, 4}, func(i int) bool { return storetest.SmallOrderID(i) == string(o.ID) }))
		}
		pages, more, request.Page.After = append(pages, text), page.HasNext, page.End
		if page.End == "" {
			request.Page.After = page.Positions[len(page.Positions)-1]
		}
	}
	if got := fmt.Sprintf("%q", pages); got != `["" "2" "10"]` {
		t.Errorf("the pages are %s", got)
	}
}

// Concurrent changes of the same order's tags are all kept, and the table stays consistent.
func TestConcurrentTags(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		r := storetest.NewRawTable(t, db, storetest.SmallDataset(t, 3), dynamo.Options{})
		id := commerce.OrderID(storetest.SmallOrderID(0))
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for _, c := range []commerce.TagsChange{{Add: []string{fmt.Sprint("t", i), "all"}}, {Remove: []string{"all"}}} {
					for {
						c.OrderID = id
						if _, err := r.Store.TagOrder(t.Context(), sam, c); err == nil {
							break
						}
					}
				}
			})
		}
		all.Wait()
		if got := fmt.Sprint(readOrder(t, r.Store, id).Tags); got != "[t0 t1 t2 t3 t4 t5 t6 t7]" {
			t.Errorf("the tags are %s", got)
		}
		r.CheckClean()
	})
}

// A table that is older than tags refuses them until an operator has added their list. Older
// servers reject the table from then on, because they do not know this list. Without the list, the
// orders keep their tags.
func TestTagsInAnOldTable(t *testing.T) {
	r, clock := oldTable(t)
	store := r.Store
	id := commerce.OrderID(storetest.SmallOrderID(0))
	unavailable := func(what string) {
		t.Helper()
		_, tag := store.TagOrder(t.Context(), sam, commerce.TagsChange{OrderID: id, Remove: []string{"vip"}})
		_, list := dynamo.ReadPage(t.Context(), store, model.OrdersByTag, dynamo.ListRequest{PartitionValue: "vip", Page: dynamo.PageRequest{Limit: 2}})
		for _, err := range []error{tag, list} {
			if reason, ok := errors.AsType[*model.DerivationUnavailable](err); !ok || reason.Name != model.EntityOrderTag.Name {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	unavailable("before")
	apply := func() {
		t.Helper()
		if _, err := store.ApplyDerivation(t.Context(), derivation(t, model.EntityOrderTag.Name), applied(clock, model.Written)); err != nil {
			t.Fatal(err)
		}
	}
	apply()
	addTags(t, store, 0, "gift", "vip")
	addTags(t, store, 1, "vip")
	if _, err := store.DropDerivation(t.Context(), derivation(t, model.EntityOrderTag.Name), applied(clock, model.Dropped)); err != nil {
		t.Fatal(err)
	}
	for key := range r.All() {
		if strings.Contains(key, "WITH_TAG") {
			t.Errorf("after the drop, the table contains %s", key)
		}
	}
	unavailable("after the drop")
	apply()
	found, _ := r.Check(check.Options{IndexLag: check.NoIndexLag})
	if i := slices.IndexFunc(found, func(f check.Inconsistency) bool { return strings.HasPrefix(f.PK, "ORDER#") }); i >= 0 {
		t.Errorf("the check found %v", found[i])
	}
	if got, _ := tagged(t, store, "vip", 9); !slices.Equal(got, []string{storetest.SmallOrderID(1), storetest.SmallOrderID(0)}) {
		t.Errorf("the orders with the tag are %v", got)
	}
}
