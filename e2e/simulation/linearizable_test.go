package simulation_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/internal/test/storetest"
	"github.com/ordergraph/ordergraph/internal/test/workload"
)

// register is the state of one record as its clients know it. text is its status, and record all of
// it. They are empty if no response has contained them in this version.
type register struct {
	version      int
	text, record string
	// keys contains lines such as "key=2", sorted: the idempotency keys of the record's changes with the
	// versions that they created, or "?".
	keys string
}

// with returns the state after the use of a key. Without a key, nothing changes.
func (s register) with(key, version string) register {
	if key == "" {
		return s
	}
	lines := append(strings.Split(s.keys, "\n"), key+"="+version)
	slices.Sort(lines)
	s.keys = strings.Join(slices.Compact(lines), "\n")
	return s
}

// used returns the versions that a key has created.
func (s register) used(key string) (versions []string) {
	for line := range strings.SplitSeq(s.keys, "\n") {
		if version, ok := strings.CutPrefix(line, key+"="); ok && key != "" {
			versions = append(versions, version)
		}
	}
	return versions
}

// access is a read or a change of a register.
type access struct {
	read bool
	key  string
	// version and text are in the response. If unknown is true, no response arrived, or the response
	// does not contain the record. If created is true, it contains another record that the change has
	// created.
	version      int
	text, record string
	unknown      bool
	created      bool
}

// registerModel is the specification of a record: each change creates the next version, a repeated
// request changes nothing, and a read returns the current version.
var registerModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{register{}} },
	Step: func(state, _, output any) []any {
		s, a := state.(register), output.(access)
		used, version := s.used(a.key), strconv.Itoa(a.version)
		switch {
		case a.created:
			return []any{register{version: s.version + 1, keys: s.keys}}
		case a.unknown:
			return []any{s, register{version: s.version + 1, keys: s.keys}.with(a.key, "?")}
		case a.read:
			if s.version == 0 || s.version == a.version && (s.text == "" || a.text == "" || s.text == a.text) {
				return []any{register{a.version, a.text, s.record, s.keys}}
			}
			return nil
		case slices.Contains(used, version), slices.Contains(used, "?"):
			return []any{s}
		case len(used) > 0:
			return nil
		case s.version == 0 || s.version == a.version-1:
			return []any{register{a.version, a.text, a.record, s.keys}.with(a.key, version)}
		case s.version == a.version && (s.record == "" || s.record == a.record): // there was nothing to change
			return []any{s.with(a.key, version)}
		default:
			return nil
		}
	},
	DescribeOperation: func(_, output any) string {
		a := output.(access)
		switch {
		case a.created:
			return "change that has created " + a.text
		case a.unknown:
			return "change without a response " + a.key
		case a.read:
			return fmt.Sprintf("read version %d %s", a.version, a.text)
		default:
			return fmt.Sprintf("change to version %d %s %s", a.version, a.text, a.key)
		}
	},
	DescribeState: func(state any) string {
		s := state.(register)
		return fmt.Sprintf("version %d %s", s.version, s.text)
	},
}).ToModel()

// verifyRegisters verifies that the requests to each order, customer, product and employee are
// linearizable. The versions of warehouses also change with the stock.
func (w *world) verifyRegisters(a *storetest.AuditResult) {
	all := map[string][]porcupine.Operation{}
	created := map[string]period{} // the payments, returns and fulfillments, each after its order
	for _, o := range w.history.operations {
		id, is := "order "+o.read, access{read: true, version: o.version, text: o.text}
		if o.read == "" {
			r := o.response.Record()
			id = workload.RecordName(o.Field, o.Input, r)
			is = access{key: o.key(), version: r.Version, text: r.Status, unknown: o.returned == 0}
			switch kind := workload.PayloadRecordFields[o.Field]; {
			case o.returned > 0 && !o.response.Succeeded():
				continue
			case kind == "order":
				if o.returned > 0 {
					is.record = w.withoutPersonal(o.response)
				}
			case kind == "customer":
				is.record = ownFields(o.response.RecordJSON, personalFields...)
			case kind == "product" || kind == "employee":
				is.record = ownFields(o.response.RecordJSON)
			case createdPrefixes[o.Field] != "" && o.returned > 0:
				name := fmt.Sprintf("order %s %s%s", o.Input["orderId"], createdPrefixes[o.Field], r.ID)
				p, ok := created[name]
				if !ok {
					p = period{o.called, o.returned}
				}
				created[name] = period{min(p.called, o.called), min(p.returned, o.returned)}
				continue
			case kind == "payment" || kind == "return" || kind == "fulfillment":
				id, is.unknown = fmt.Sprintf("order %s", o.Input["orderId"]), true
			default:
				continue
			}
		}
		if id == "" || w.Erase && id == "customer "+erasedCustomer {
			continue
		}
		returned := int64(o.returned)
		if o.returned == 0 {
			returned = w.stepAfter(o.at + maxUnknown)
		}
		all[id] = append(all[id], porcupine.Operation{ClientId: o.client, Output: is, Call: int64(o.called), Return: returned, Metadata: o.decision})
	}
	for name, p := range created {
		id, record, _ := strings.Cut(strings.TrimPrefix(name, "order "), " ")
		for _, o := range w.history.operations {
			prefix := createdPrefixes[o.Field]
			if o.returned == 0 && prefix != "" && strings.HasPrefix(record, prefix) && o.Input["orderId"] == id {
				p.called = min(p.called, o.called) // this request may have created the record
			}
		}
		id = "order " + id
		all[id] = append(all[id], porcupine.Operation{ClientId: 2*clients + 4, Output: access{created: true, text: record}, Call: int64(p.called), Return: int64(p.returned), Metadata: record})
	}
	// Clients see neither that an expired order is cancelled, nor that an order is claimed or erased.
	for k, r := range a.Records {
		if kind := r.Text("type"); strings.HasPrefix(k.SK, "EVENT#") && (kind == "claimed" || kind == "erased" || r.Text("actor") == dynamo.ExpiryActor) {
			id := "order " + r.Text("orderId")
			all[id] = append(all[id], porcupine.Operation{ClientId: 2*clients + 2, Output: access{unknown: true}, Call: 0, Return: math.MaxInt64, Metadata: kind})
			if kind == "erased" { // an erasure also cancels an open order
				all[id] = append(all[id], porcupine.Operation{ClientId: 2*clients + 3, Output: access{unknown: true}, Call: 0, Return: math.MaxInt64, Metadata: "cancelled by an erasure"})
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		operations := all[id]
		if r := recordOf(a, id); r != nil {
			end := int64(w.step()) + 10
			operations = append(operations, porcupine.Operation{ClientId: 2 * clients, Output: access{read: true, version: r.Int("version"), text: strings.ToUpper(r.Text("status"))}, Call: end, Return: end + 1, Metadata: "the table"})
		}
		w.checkLater(id, registerModel, operations)
	}
}

// createdPrefixes maps the mutations that create a record of an order to the prefix of its sort key.
var createdPrefixes = map[string]string{"recordPayment": "PAYMENT#", "requestReturn": "RETURN#", "createFulfillment": "SHIPMENT#"}

// maxUnknown is longer than the time after which a request without a response can still have an
// effect: its last attempt, and a request of the server that arrives late.
const maxUnknown = clientTimeout + longLatency + 2*time.Minute

// stepAfter returns a step that is after a time.
func (w *world) stepAfter(at time.Duration) int64 {
	for _, o := range w.history.operations { // sorted by time
		if o.at > at {
			return int64(o.called)
		}
	}
	return math.MaxInt64
}

// ownFields returns the fields of a record that only its own changes change, without others. Numbers of
// other records, such as orderCount, are left out.
func ownFields(record string, others ...string) string {
	fields := map[string]any{}
	if json.Unmarshal([]byte(record), &fields) != nil {
		return ""
	}
	maps.DeleteFunc(fields, func(name string, v any) bool {
		_, isNumber := v.(float64)
		return isNumber && name != "version" || name == "updatedAt" || slices.Contains(others, name)
	})
	text, err := json.Marshal(fields)
	if err != nil {
		return ""
	}
	return string(text)
}

// recordOf returns the record of a subject: see workload.RecordName.
func recordOf(a *storetest.AuditResult, subject string) storetest.Record {
	words := strings.Fields(subject)
	key := storetest.Key{PK: strings.ToUpper(words[0]) + "#" + words[1], SK: "#METADATA"}
	if words[0] == "inventoryLevel" {
		key = storetest.Key{PK: "PRODUCT#" + words[1], SK: "WAREHOUSE#" + words[2]}
	}
	return a.Records[key]
}

// describe returns a line for each operation, in the sequence of their calls.
func describe(model porcupine.Model, all []porcupine.Operation) string {
	all = slices.SortedFunc(slices.Values(all), func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var text strings.Builder
	for _, o := range all {
		returned := fmt.Sprint(o.Return)
		if o.Return == math.MaxInt64 {
			returned = "end"
		}
		fmt.Fprintf(&text, "\n\t%d to %s: %v: %s", o.Call, returned, o.Metadata, model.DescribeOperation(nil, o.Output))
	}
	return text.String()
}
