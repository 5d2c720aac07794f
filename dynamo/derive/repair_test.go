package derive_test

import (
	"cmp"
	"context"
	"maps"
	"math/big"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"pgregory.net/rapid"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/check"
	"github.com/ordergraph/ordergraph/dynamo/derive"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
)

// storedNumber identifies a derived number by the key of its record.
type storedNumber struct{ pk, sk, attribute string }

// miscounts returns by how much stored derived numbers are higher than what the base values contribute.
// It omits right numbers, and adds up the parts of an account rep's order count. Mutations change no
// miscount.
func (s *shop) miscounts() map[storedNumber]*big.Rat {
	all := map[storedNumber]*big.Rat{}
	add := func(k model.Keys, attribute string, amount *big.Rat) {
		n := storedNumber{k.PK, k.SK, attribute}
		if model.EntityOf(k) == &model.EntityRepOrders {
			n.sk = ""
		}
		if all[n] == nil {
			all[n] = new(big.Rat)
		}
		all[n].Add(all[n], amount)
	}
	for _, base := range s.baseValues() {
		derive.Contributions(model.OneEra(s.shards), base, func(t derive.Target, a derive.Amount) {
			amount, _ := new(big.Rat).SetString(a.Value.Neg().String())
			add(t.Key(&model.KeyBuilder{}), a.Attribute, amount)
		})
	}
	for n, v := range s.storedNumbers() {
		add(model.Keys{PK: n.pk, SK: n.sk}, n.attribute, v)
	}
	maps.DeleteFunc(all, func(_ storedNumber, wrong *big.Rat) bool { return wrong.Sign() == 0 })
	return all
}

func (s *shop) storedNumbers() map[storedNumber]*big.Rat {
	all := map[storedNumber]*big.Rat{}
	for _, rec := range s.All() {
		k := model.KeyOf(rec)
		for _, sum := range derive.Sums() {
			for _, attribute := range sum.Attributes {
				if v := storetest.Record(rec).Number(attribute); v != nil && model.EntityOf(k) == sum.Target {
					all[storedNumber{k.PK, k.SK, attribute}] = v
				}
			}
		}
	}
	return all
}

// damage makes one or all numbers of a random sum wrong, as other software would, or deletes their
// records. It returns the keys of these records.
func (s *shop) damage() (keys []string) {
	stored := s.storedNumbers()
	sum := rapid.SampledFrom(derive.Sums()).Draw(s.rt, "sum")
	numbers := slices.SortedFunc(maps.Keys(stored), func(a, b storedNumber) int {
		return cmp.Or(cmp.Compare(a.pk, b.pk), cmp.Compare(a.sk, b.sk), cmp.Compare(a.attribute, b.attribute))
	})
	numbers = slices.DeleteFunc(numbers, func(n storedNumber) bool {
		return !slices.Contains(sum.Attributes, n.attribute) || model.EntityOf(model.Keys{PK: n.pk, SK: n.sk}) != sum.Target
	})
	kind := rapid.IntRange(0, 2).Draw(s.rt, "kind of damage")
	if kind > 0 && len(numbers) > 0 {
		numbers = []storedNumber{rapid.SampledFrom(numbers).Draw(s.rt, "number")}
	}
	more := big.NewRat(rapid.Int64Range(1, 3).Draw(s.rt, "error"), 1)
	for _, n := range numbers {
		keys = append(keys, n.pk+" "+n.sk)
		if sum.Target == &model.EntityOrder { // a mutation copies wrong sums of payments
			keys = append(keys, "CUSTOMER#"+model.TextOf(model.Record(s.Get(n.pk, n.sk)), "customerId")+" "+n.pk, n.pk+" "+string(model.EntityPaymentDue.SK))
		}
		if kind == 2 && sum.Target.Kind == model.Sum && !sum.DeletedAtZero {
			s.Delete(n.pk, n.sk)
		} else {
			s.Set(n.pk, n.sk, storetest.Item{n.attribute: storetest.Num(new(big.Rat).Add(stored[n], more).FloatString(2))})
		}
	}
	return keys
}

// concurrentMutation is a mutation that starts before one request of a check, and commits before a
// later request.
type concurrentMutation struct {
	start, commit  int
	execute        func()
	ready, release chan struct{}
	done           chan struct{}
}

func (s *shop) concurrentMutation(t *testing.T, db *dynamodb.Client, opts dynamo.Options) *concurrentMutation {
	m := &concurrentMutation{start: rapid.IntRange(0, 40).Draw(s.rt, "start"), ready: make(chan struct{}), release: make(chan struct{}), done: make(chan struct{})}
	m.commit = m.start + rapid.IntRange(0, 10).Draw(s.rt, "duration")
	var once sync.Once
	store := storetest.StoreWithClient(t, s.Store, storetest.WithRequestHook(db, func(_ context.Context, in any) error {
		if _, ok := in.(*dynamodb.TransactWriteItemsInput); ok {
			once.Do(func() { close(m.ready) })
			<-m.release
		}
		return nil
	}), opts)
	s.follow(store)
	mutation := s.mutation()
	m.execute = func() {
		defer close(m.done)
		if err := mutation(t.Context(), store); err != nil && !commerce.IsUserError(err) {
			t.Error(err)
		}
	}
	return m
}

// before advances the mutation to its state before the given request of the check.
func (m *concurrentMutation) before(request int) {
	if request == m.start {
		go m.execute()
		select {
		case <-m.ready:
		case <-m.done:
		}
	}
	if request == m.commit {
		close(m.release)
		<-m.done
	}
}

// Some derived numbers are wrong, and mutations run during a repair. The repair changes only wrong
// numbers, and makes them exact. A new declaration needs no test of its own.
func TestRepairedNumbersEqualDerivedNumbers(t *testing.T) {
	storetest.ForEachEngineIfLong(t, func(t *testing.T, db *dynamodb.Client) {
		storetest.CheckProperty(t, func(rt *rapid.T) {
			opts := dynamo.Options{Shards: rapid.IntRange(1, 2).Draw(rt, "shards"), OrderExpiry: time.Hour}
			s := newShop(t, rt, db, opts)
			defer s.DeleteTable()
			s.addSales(t)
			s.repair() // add up the sales
			for range rapid.IntRange(0, 6).Draw(rt, "earlier mutations") {
				if err := s.mutation()(t.Context(), s.Store); err != nil && !commerce.IsUserError(err) {
					rt.Fatal(err)
				}
			}
			s.repair() // count the open orders
			damaged, repaired := map[string]bool{}, map[string]bool{}
			for range rapid.IntRange(1, 4).Draw(rt, "damages") {
				for _, k := range s.damage() {
					damaged[k] = true
				}
			}
			wrong := s.miscounts()
			var mutations []*concurrentMutation
			for range rapid.IntRange(0, 12).Draw(rt, "mutations") {
				mutations = append(mutations, s.concurrentMutation(t, db, opts))
			}
			requests := 0
			before := func(request int) {
				for _, m := range mutations {
					m.before(request)
				}
			}
			hooked := storetest.StoreWithClient(t, s.Store, storetest.WithRequestHook(db, func(context.Context, any) error {
				before(requests)
				requests++
				return nil
			}), opts)
			summary, err := s.follow(hooked).CheckRecords(t.Context(), check.Options{
				Repair: true, IndexLag: check.NoIndexLag, MaxCandidates: rapid.SampledFrom([]int{0, 1, 4}).Draw(rt, "candidates"),
				OnInconsistency: func(d check.Inconsistency) {
					if what := d.Kind + d.PK + d.SK; !damaged[d.PK+" "+d.SK] || repaired[what] {
						rt.Errorf("the check reports %+v", d)
					} else {
						repaired[what] = d.Repaired
					}
				},
			})
			if err != nil {
				rt.Fatal(err)
			}
			for ; requests <= 50; requests++ {
				before(requests)
			}
			for n, v := range s.miscounts() {
				if wrong[n] == nil || v.Cmp(wrong[n]) != 0 {
					rt.Errorf("after the repair, %v is wrong by %s, before by %v: %+v", n, v, wrong[n], summary)
				}
			}
			s.repair()
			for n, v := range s.miscounts() {
				rt.Errorf("after a repair at rest, %v is wrong by %s", n, v)
			}
		})
	})
}
