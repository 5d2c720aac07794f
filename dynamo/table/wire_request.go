package table

import (
	"encoding/base64"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// The operations as requests name them, in header values that all requests share.
type operations struct{ getItem, batchGetItem, query, transactGetItems, transactWriteItems []string }

// named are the operations' names. Source: the SDK's requests.
func named() operations {
	name := func(operation string) []string { return []string{"DynamoDB_20120810." + operation} }
	return operations{
		getItem: name("GetItem"), batchGetItem: name("BatchGetItem"), query: name("Query"),
		transactGetItems: name("TransactGetItems"), transactWriteItems: name("TransactWriteItems"),
	}
}

// asking is how a request reads.
type asking struct {
	table string
	// consistent asks for a consistent read, priced for what it costs.
	consistent, priced bool
}

// writer writes a request's JSON. It is not ok where only the SDK knows what to write: for a text
// that is not UTF-8, for nil bytes, and for a value of an unknown type.
type writer struct {
	body []byte
	ok   bool
	// names is a stack: the sorted names of the maps that are being written, innermost last.
	names []string
}

func newWriter(size int) *writer { return &writer{body: make([]byte, 0, size), ok: true} }

// raw adds JSON as it is.
func (w *writer) raw(text string) { w.body = append(w.body, text...) }

// string adds a string.
func (w *writer) string(s string) {
	const hexadecimal = "0123456789abcdef"
	w.ok = w.ok && utf8.ValidString(s)
	w.raw(`"`)
	// Most strings are added at once: only what needs an escape interrupts them.
	plain := 0
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		w.raw(s[plain:i])
		plain = i + 1
		if c < 0x20 {
			w.body = append(w.body, '\\', 'u', '0', '0', hexadecimal[c>>4], hexadecimal[c&15])
		} else {
			w.body = append(w.body, '\\', c)
		}
	}
	w.raw(s[plain:])
	w.raw(`"`)
}

// text adds a string as an attribute's value.
func (w *writer) text(s string) {
	w.raw(`{"S":`)
	w.string(s)
	w.raw(`}`)
}

// comma adds a comma, unless the object or array has just begun.
func (w *writer) comma() {
	if last := w.body[len(w.body)-1]; last != '{' && last != '[' {
		w.raw(`,`)
	}
}

// member adds the name of a member of an object, behind a comma where one is due.
func (w *writer) member(name string) {
	w.comma()
	w.string(name)
	w.raw(`:`)
}

// texts adds an array of strings.
func (w *writer) texts(texts []string) {
	w.raw(`[`)
	for _, s := range texts {
		w.comma()
		w.string(s)
	}
	w.raw(`]`)
}

// bytes adds bytes as a string in base64. It leaves nil to the SDK, which writes null.
func (w *writer) bytes(b []byte) {
	w.ok = w.ok && b != nil
	w.raw(`"`)
	w.body = base64.StdEncoding.AppendEncode(w.body, b)
	w.raw(`"`)
}

// value adds an attribute's value.
func (w *writer) value(v types.AttributeValue) {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		w.text(v.Value)
		return
	case *types.AttributeValueMemberN:
		w.raw(`{"N":`)
		w.string(v.Value)
	case *types.AttributeValueMemberB:
		w.raw(`{"B":`)
		w.bytes(v.Value)
	case *types.AttributeValueMemberBOOL:
		w.raw(`{"BOOL":`)
		w.body = strconv.AppendBool(w.body, v.Value)
	case *types.AttributeValueMemberNULL:
		w.raw(`{"NULL":`)
		w.body = strconv.AppendBool(w.body, v.Value)
	case *types.AttributeValueMemberSS:
		w.raw(`{"SS":`)
		w.texts(v.Value)
	case *types.AttributeValueMemberNS:
		w.raw(`{"NS":`)
		w.texts(v.Value)
	case *types.AttributeValueMemberBS:
		w.raw(`{"BS":[`)
		for _, b := range v.Value {
			w.comma()
			w.bytes(b)
		}
		w.raw(`]`)
	case *types.AttributeValueMemberL:
		w.raw(`{"L":[`)
		for _, element := range v.Value {
			w.comma()
			w.value(element)
		}
		w.raw(`]`)
	case *types.AttributeValueMemberM:
		w.raw(`{"M":`)
		writeMap(w, v.Value, w.value)
	default:
		w.ok = false
		return
	}
	w.raw(`}`)
}

// attributes adds attributes by their names.
func (w *writer) attributes(attributes map[string]types.AttributeValue) {
	writeMap(w, attributes, w.value)
}

// writeMap adds a map as an object, its names in order, so that equal requests have equal bytes.
func writeMap[V any](w *writer, m map[string]V, value func(V)) {
	first := len(w.names)
	for name := range m {
		w.names = append(w.names, name)
	}
	names := w.names[first:]
	slices.Sort(names)
	w.raw(`{`)
	for _, name := range names {
		w.member(name)
		value(m[name])
	}
	w.raw(`}`)
	w.names = w.names[:first]
}

// key adds a primary key.
func (w *writer) key(k model.Keys) {
	w.raw(`{"` + model.AttrPK + `":`)
	w.text(k.PK)
	w.raw(`,"` + model.AttrSK + `":`)
	w.text(k.SK)
	w.raw(`}`)
}

// end adds what all requests end with.
func (w *writer) end(a asking) ([]byte, bool) {
	if a.priced {
		w.raw(`,"ReturnConsumedCapacity":"TOTAL"`)
	}
	w.raw(`}`)
	return w.body, w.ok
}

// frame is about how long a request is without its keys, in bytes.
const frame = 256

// getItemBody is a GetItem.
func getItemBody(a asking, k model.Keys) ([]byte, bool) {
	w := newWriter(frame + len(k.PK) + len(k.SK))
	w.raw(`{"TableName":`)
	w.string(a.table)
	w.raw(`,"Key":`)
	w.key(k)
	if a.consistent {
		w.raw(`,"ConsistentRead":true`)
	}
	return w.end(a)
}

// batchBody is a BatchGetItem.
func batchBody(a asking, ks []model.Keys) ([]byte, bool) {
	w := newWriter(frame + 80*len(ks))
	w.raw(`{"RequestItems":{`)
	w.string(a.table)
	w.raw(`:{"Keys":[`)
	for i, k := range ks {
		if i > 0 {
			w.raw(`,`)
		}
		w.key(k)
	}
	w.raw(`]`)
	if a.consistent {
		w.raw(`,"ConsistentRead":true`)
	}
	w.raw(`}}`)
	return w.end(a)
}

// queryBody is a Query.
func queryBody(a asking, q querying) ([]byte, bool) {
	w := newWriter(frame + len(q.where.Text) + len(q.where.Partition) + len(q.where.From) + len(q.where.To))
	w.raw(`{"TableName":`)
	w.string(a.table)
	if q.pattern.Index != "" {
		w.raw(`,"IndexName":`)
		w.string(q.pattern.Index)
	}
	w.raw(`,"KeyConditionExpression":`)
	w.string(q.where.Text)
	w.raw(`,"ExpressionAttributeValues":{":pk":`)
	w.text(q.where.Partition)
	if q.where.From != "" {
		w.raw(`,":from":`)
		w.text(q.where.From)
	}
	if q.where.To != "" {
		w.raw(`,":to":`)
		w.text(q.where.To)
	}
	w.raw(`},"ScanIndexForward":`)
	w.body = strconv.AppendBool(w.body, q.forward)
	w.raw(`,"Limit":`)
	w.body = strconv.AppendInt(w.body, int64(q.limit), 10)
	if a.consistent {
		w.raw(`,"ConsistentRead":true`)
	}
	return w.end(a)
}

// transactGetBody is a TransactGetItems of one record.
func transactGetBody(table string, k model.Keys) ([]byte, bool) {
	w := newWriter(frame + len(k.PK) + len(k.SK))
	w.raw(`{"TransactItems":[{"Get":{"TableName":`)
	w.string(table)
	w.raw(`,"Key":`)
	w.key(k)
	w.raw(`}}]}`)
	return w.body, w.ok
}

// transactWriteBody is a TransactWriteItems.
func transactWriteBody(token string, items []types.TransactWriteItem) ([]byte, bool) {
	w := newWriter(frame + 3*frame*len(items))
	w.names = make([]string, 0, 32)
	w.raw(`{"ClientRequestToken":`)
	w.string(token)
	w.raw(`,"TransactItems":[`)
	for _, item := range items {
		w.comma()
		w.action(item)
	}
	w.raw(`]}`)
	return w.body, w.ok
}

// action adds one action of a TransactWriteItems.
func (w *writer) action(item types.TransactWriteItem) {
	w.raw(`{`)
	if c := item.ConditionCheck; c != nil {
		w.member("ConditionCheck")
		w.raw(`{"Key":`)
		w.attributes(c.Key)
		w.condition(c.TableName, c.ConditionExpression, c.ExpressionAttributeNames, c.ExpressionAttributeValues, c.ReturnValuesOnConditionCheckFailure)
	}
	if d := item.Delete; d != nil {
		w.member("Delete")
		w.raw(`{"Key":`)
		w.attributes(d.Key)
		w.condition(d.TableName, d.ConditionExpression, d.ExpressionAttributeNames, d.ExpressionAttributeValues, d.ReturnValuesOnConditionCheckFailure)
	}
	if p := item.Put; p != nil {
		w.member("Put")
		w.raw(`{"Item":`)
		w.attributes(p.Item)
		w.condition(p.TableName, p.ConditionExpression, p.ExpressionAttributeNames, p.ExpressionAttributeValues, p.ReturnValuesOnConditionCheckFailure)
	}
	if u := item.Update; u != nil {
		w.member("Update")
		w.raw(`{"Key":`)
		w.attributes(u.Key)
		w.optional("UpdateExpression", u.UpdateExpression)
		w.condition(u.TableName, u.ConditionExpression, u.ExpressionAttributeNames, u.ExpressionAttributeValues, u.ReturnValuesOnConditionCheckFailure)
	}
	w.raw(`}`)
}

// condition adds what all actions have, and ends the action.
func (w *writer) condition(table, text *string, names map[string]string, values map[string]types.AttributeValue, failed types.ReturnValuesOnConditionCheckFailure) {
	w.optional("TableName", table)
	w.optional("ConditionExpression", text)
	if names != nil {
		w.member("ExpressionAttributeNames")
		writeMap(w, names, w.string)
	}
	if values != nil {
		w.member("ExpressionAttributeValues")
		w.attributes(values)
	}
	if failed != "" {
		w.member("ReturnValuesOnConditionCheckFailure")
		w.string(string(failed))
	}
	w.raw(`}`)
}

// optional adds a member with a text, where there is one.
func (w *writer) optional(name string, text *string) {
	if text != nil {
		w.member(name)
		w.string(*text)
	}
}
