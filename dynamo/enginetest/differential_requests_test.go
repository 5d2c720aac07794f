package enginetest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// attribute is an attribute and its type, or its usual type if it is in no key.
type attribute struct{ name, kind string }

// schema is the definition of a table.
type schema struct {
	table   string
	key     []attribute
	indexes []indexSchema
	// large reports whether a request for the table had an item of more than 50 KB.
	large bool
}

// indexSchema is the definition of a global secondary index.
type indexSchema struct {
	name       string
	key        []attribute
	projection string
	include    []string // include has the attributes of the projection INCLUDE
}

// drawSchema draws a table with up to two indexes. A table's key attribute may also be in the key
// of an index.
func drawSchema(t *rapid.T) *schema {
	g := &generator{T: t}
	kind := func() string { return g.pick("S", "S", "N", "B") }
	s := &schema{key: []attribute{{"pk", kind()}}}
	if g.number(4) < 3 {
		s.key = append(s.key, attribute{"sk", kind()})
	}
	for i := range g.number(3) {
		x := indexSchema{name: fmt.Sprint("index-", i), projection: g.pick("ALL", "KEYS_ONLY", "INCLUDE")}
		if x.key = []attribute{{fmt.Sprint("p", i), kind()}}; g.rarely(4) {
			x.key[0] = s.key[len(s.key)-1]
		}
		if g.number(4) < 3 {
			x.key = append(x.key, attribute{fmt.Sprint("s", i), kind()})
		}
		if x.projection == "INCLUDE" {
			x.include = []string{"n", "m"}
		}
		s.indexes = append(s.indexes, x)
	}
	return s
}

// GoString returns the definition as rapid prints it.
func (s *schema) GoString() string { return describe("CreateTable", s.definition()) }

// describe returns a request for a message.
func describe(operation string, input object) string {
	encoded, err := json.Marshal(input)
	if err != nil {
		return fmt.Sprint(operation, " ", err)
	}
	return operation + " " + abbreviate(encoded)
}

// definition returns the input of CreateTable.
func (s *schema) definition() object {
	var attributes, indexes []object
	elements := func(key []attribute) (list []object) {
		for i, a := range key {
			list = append(list, object{"AttributeName": a.name, "KeyType": []string{"HASH", "RANGE"}[i]})
			if !slices.ContainsFunc(attributes, func(d object) bool { return d["AttributeName"] == a.name }) {
				attributes = append(attributes, object{"AttributeName": a.name, "AttributeType": a.kind})
			}
		}
		return list
	}
	in := object{"TableName": s.table, "BillingMode": "PAY_PER_REQUEST", "KeySchema": elements(s.key)}
	for _, x := range s.indexes {
		projection := object{"ProjectionType": x.projection}
		if x.include != nil {
			projection["NonKeyAttributes"] = x.include
		}
		indexes = append(indexes, object{"IndexName": x.name, "KeySchema": elements(x.key), "Projection": projection})
	}
	if indexes != nil {
		in["GlobalSecondaryIndexes"] = indexes
	}
	in["AttributeDefinitions"] = attributes
	return in
}

// keys returns the attributes of the keys of the table and its indexes.
func (s *schema) keys() []attribute {
	keys := slices.Clone(s.key)
	for _, x := range s.indexes {
		keys = append(keys, x.key...)
	}
	return keys
}

// projected returns the attributes that an index contains, nil for all.
func (s *schema) projected(x indexSchema) []string {
	if x.projection == "ALL" {
		return nil
	}
	names := slices.Clone(x.include)
	for _, a := range slices.Concat(s.key, x.key) {
		names = append(names, a.name)
	}
	return names
}

// has reports whether a key has an attribute with a name.
func has(key []attribute, name string) bool {
	return slices.ContainsFunc(key, func(a attribute) bool { return a.name == name })
}

// request is one operation with its input.
type request struct {
	operation string
	input     object
	indexed   bool   // indexed reports whether the table has indexes
	large     bool   // large reports whether pages may be limited by their size
	inclusive bool   // inclusive reports whether the key condition has an inclusive bound
	sortKey   string // sortKey is the attribute that the items of an index are ordered by, or ""
}

// GoString returns the request as rapid prints it.
func (r *request) GoString() string { return describe(r.operation, r.input) }

// generator draws requests for one table. They have few keys, so that they often meet the same
// items. Most requests are valid.
type generator struct {
	*rapid.T
	schema   *schema
	worker   int
	newToken func() string
	// committed is the input of the latest transaction with a token, nil for none.
	committed object

	// The following state belongs to the request that is being drawn.

	severalKeys bool     // severalKeys reports whether the request has several keys
	projected   []string // projected has the attributes that the expressions may use, nil for all
}

// number draws a number that is less than n. Small numbers are more probable, and failing tests
// shrink to them.
func (g *generator) number(n int) int {
	return (rapid.IntRange(0, n-1).Draw(g.T, "number") + g.worker) % n
}

// rarely returns true in about one of n cases. rapid prefers the bounds of a range, but not its
// middle.
func (g *generator) rarely(n int) bool { return g.number(n) == n/2 }

// pick returns one of the options.
func (g *generator) pick(options ...string) string { return options[g.number(len(options))] }

// draw draws a request.
func (g *generator) draw(t *rapid.T) *request {
	next := *g
	next.T = t
	return next.request()
}

// drawPut draws a request that stores an item.
func (g *generator) drawPut(t *rapid.T) *request {
	next := *g
	next.T = t
	return &request{operation: "PutItem", input: object{"TableName": g.schema.table, "Item": next.item()}}
}

// operationNames has the operations, more often if they are more interesting.
var operationNames = []string{
	"PutItem", "PutItem", "PutItem", "UpdateItem", "UpdateItem", "UpdateItem", "UpdateItem", "DeleteItem", "GetItem", "Query", "Query", "Query",
	"Scan", "Scan", "BatchGetItem", "BatchWriteItem", "TransactGetItems", "TransactWriteItems", "TransactWriteItems",
}

func (g *generator) request() *request {
	r := &request{operation: g.pick(operationNames...), input: object{}, indexed: len(g.schema.indexes) > 0}
	g.severalKeys = strings.HasPrefix(r.operation, "Batch") || strings.HasPrefix(r.operation, "Transact")
	switch r.operation {
	case "PutItem", "UpdateItem", "DeleteItem":
		r.input = g.write(r.operation)
		g.returnValues(r)
	case "GetItem":
		r.input = g.get()
		r.input["ConsistentRead"] = g.number(2) == 1
	case "Query":
		g.query(r)
	case "Scan":
		g.scan(r)
	case "BatchGetItem":
		r.input["RequestItems"] = object{g.schema.table: g.batchGet()}
	case "BatchWriteItem":
		r.input["RequestItems"] = object{g.schema.table: g.batchWrite()}
	case "TransactGetItems":
		var actions []object
		for range 1 + g.number(3) {
			actions = append(actions, object{"Get": g.get()})
		}
		r.input["TransactItems"] = actions
	case "TransactWriteItems":
		r.input["TransactItems"] = g.actions()
		if g.rarely(3) {
			g.token(r)
		}
	}
	if g.rarely(3) {
		r.input["ReturnConsumedCapacity"] = g.pick("TOTAL", "INDEXES")
	}
	return r
}

// write draws the parameters that a write has alone and in a transaction.
func (g *generator) write(operation string) object {
	in := object{"TableName": g.schema.table}
	e := g.expressions()
	if operation == "PutItem" {
		in["Item"] = g.item()
	} else {
		in["Key"] = g.key()
	}
	if operation == "UpdateItem" && (g.severalKeys || !g.rarely(20)) { // exclusion 3
		in["UpdateExpression"] = e.update()
	}
	if operation == "ConditionCheck" || !e.usesKey && g.rarely(3) { // exclusion 10
		in["ConditionExpression"] = e.condition()
		if g.number(2) == 1 {
			in["ReturnValuesOnConditionCheckFailure"] = g.pick("ALL_OLD", "NONE")
		}
	}
	e.addTo(in)
	return in
}

// returnValues adds ReturnValues to a write.
func (g *generator) returnValues(r *request) {
	if g.number(2) == 0 {
		return
	}
	all := []string{"NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"}
	update, _ := r.input["UpdateExpression"].(string)
	switch {
	case r.operation != "UpdateItem" && !g.rarely(20):
		all = all[:2]
	case strings.ContainsAny(update, ".["):
		all = all[:3] // exclusion 1
	}
	r.input["ReturnValues"] = g.pick(all...)
}

// get draws the parameters that a read of one item has alone and in a transaction.
func (g *generator) get() object {
	in := object{"TableName": g.schema.table, "Key": g.key()}
	e := g.expressions()
	if g.rarely(3) {
		in["ProjectionExpression"] = e.projection()
	}
	e.addTo(in)
	return in
}

// batchGet draws the keys of BatchGetItem.
func (g *generator) batchGet() object {
	in := g.get()
	delete(in, "TableName")
	keys := []any{in["Key"]}
	delete(in, "Key")
	for range g.number(4) {
		keys = append(keys, g.key())
	}
	in["Keys"] = keys
	return in
}

// batchWrite draws the writes of BatchWriteItem.
func (g *generator) batchWrite() (writes []object) {
	for range 1 + g.number(5) {
		if g.rarely(3) {
			writes = append(writes, object{"DeleteRequest": object{"Key": g.key()}})
		} else {
			writes = append(writes, object{"PutRequest": object{"Item": g.item()}})
		}
	}
	return writes
}

// actions draws the actions of a transaction, usually on different items.
func (g *generator) actions() (actions []any) {
	if g.rarely(40) { // exclusion 2
		twice := object{"Delete": object{"TableName": g.schema.table, "Key": g.key()}}
		return []any{twice, twice}
	}
	var keys []string
	for range 1 + g.number(4) {
		operation := g.pick("PutItem", "UpdateItem", "DeleteItem", "ConditionCheck")
		in := g.write(operation)
		key := ""
		for _, a := range g.schema.key {
			from, ok := in["Key"].(object)
			if !ok {
				from = in["Item"].(object)
			}
			key += render(from[a.name])
		}
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
			actions = append(actions, object{strings.TrimSuffix(operation, "Item"): in})
		}
	}
	return actions
}

// token adds a token to a transaction, or repeats the latest one with a token: either unchanged, or
// with a further action.
func (g *generator) token(r *request) {
	r.input["ClientRequestToken"] = g.newToken()
	if g.committed == nil || g.rarely(3) {
		return
	}
	r.input = maps.Clone(g.committed)
	if g.rarely(3) {
		other := object{} // exclusion 14: a valid key that no other request has
		for _, a := range g.schema.key {
			other[a.name] = map[string]object{"S": {"S": "other"}, "N": {"N": "99"}, "B": {"B": encode("other")}}[a.kind]
		}
		action := object{"Delete": object{"TableName": g.schema.table, "Key": other}}
		r.input["TransactItems"] = slices.Concat(r.input["TransactItems"].([]any), []any{action})
	}
}

func (g *generator) query(r *request) {
	key := g.schema.key
	if len(g.schema.indexes) > 0 && g.number(2) == 1 {
		x := g.index(r)
		if key = x.key; !g.rarely(10) {
			g.projected = g.schema.projected(x)
		}
		if len(key) == 2 {
			r.sortKey = key[1].name
		}
	}
	e := g.expressions()
	condition := e.keyCondition(key)
	r.input["KeyConditionExpression"] = condition.text
	r.inclusive = condition.inclusive
	if r.input["IndexName"] == nil && !condition.inclusive && g.rarely(6) { // exclusion 12
		start := g.key()
		for _, a := range g.schema.key { // exclusion 16
			if v, ok := start[a.name].(object); ok && len(render(v)) > 1000 {
				start[a.name] = g.validKeyValue(a)
			}
		}
		r.input["ExclusiveStartKey"] = start
	}
	if g.rarely(3) {
		r.input["ScanIndexForward"] = g.number(2) == 1
	}
	g.list(r, e)
}

func (g *generator) scan(r *request) {
	if len(g.schema.indexes) > 0 && g.rarely(3) {
		g.projected = g.schema.projected(g.index(r)) // exclusion 7
	}
	if g.rarely(3) {
		r.input["TotalSegments"] = 1 + g.number(4)
	}
	g.list(r, g.expressions())
}

// index draws the index of a Query or Scan.
func (g *generator) index(r *request) indexSchema {
	x := g.schema.indexes[g.number(len(g.schema.indexes))]
	r.input["IndexName"] = x.name
	return x
}

// list draws the parameters that Query and Scan have in common.
func (g *generator) list(r *request, e *expressions) {
	r.input["TableName"] = g.schema.table
	r.large = g.schema.large
	if g.rarely(3) {
		r.input["FilterExpression"] = e.condition()
	}
	switch g.number(8) {
	case 5, 6:
		r.input["ProjectionExpression"] = e.projection()
		r.sortKey = ""
	case 7:
		r.input["Select"] = g.pick("COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES", "SPECIFIC_ATTRIBUTES")
	}
	if g.rarely(3) {
		r.input["Limit"] = 1 + g.number(4)
	}
	if g.rarely(4) && r.input["IndexName"] == nil {
		r.input["ConsistentRead"] = true
	}
	e.addTo(r.input)
}
