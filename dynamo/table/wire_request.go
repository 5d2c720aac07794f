package table

import (
	"encoding/base64"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// operations has the values of the X-Amz-Target header for each operation. All requests share them.
type operations struct{ getItem, batchGetItem, query, transactGetItems, transactWriteItems []string }

// named returns the values of the X-Amz-Target header. Source: the SDK's requests.
func named() operations {
	name := func(operation string) []string { return []string{"DynamoDB_20120810." + operation} }
	return operations{
		getItem: name("GetItem"), batchGetItem: name("BatchGetItem"), query: name("Query"),
		transactGetItems: name("TransactGetItems"), transactWriteItems: name("TransactWriteItems"),
	}
}

// asking has the options of a read.
type asking struct {
	table string
	// consistent requests a consistent read. priced requests the consumed capacity.
	consistent, priced bool
}

// writer encodes the JSON body of a request. All its methods append to the body.
type writer struct {
	body []byte
	// ok is unset for values that are left to the SDK: a string that is not UTF-8, nil bytes, and a
	// value of an unknown type.
	ok bool
	// names is a stack of the sorted names of the maps that are being encoded, innermost last.
	names []string
}

func newWriter(size int) *writer { return &writer{body: make([]byte, 0, size), ok: true} }

// raw adds JSON text unchanged.
func (w *writer) raw(text string) { w.body = append(w.body, text...) }

// string adds a string.
func (w *writer) string(s string) {
	const hexadecimal = "0123456789abcdef"
	w.ok = w.ok && utf8.ValidString(s)
	w.raw(`"`)
	// Parts without characters that need an escape are copied at once.
	copied := 0
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		w.raw(s[copied:i])
		copied = i + 1
		if c < 0x20 {
			w.body = append(w.body, '\\', 'u', '0', '0', hexadecimal[c>>4], hexadecimal[c&15])
		} else {
			w.body = append(w.body, '\\', c)
		}
	}
	w.raw(s[copied:])
	w.raw(`"`)
}

// text adds an attribute value of type S.
func (w *writer) text(s string) {
	w.raw(`{"S":`)
	w.string(s)
	w.raw(`}`)
}

// comma adds a comma unless the object or array is still empty.
func (w *writer) comma() {
	if last := w.body[len(w.body)-1]; last != '{' && last != '[' {
		w.raw(`,`)
	}
}

// member adds the name of an object's member, after a comma if it is not the first.
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

// bytes adds bytes as a base64 string. It leaves nil to the SDK, which encodes it as null.
func (w *writer) bytes(b []byte) {
	w.ok = w.ok && b != nil
	w.raw(`"`)
	w.body = base64.StdEncoding.AppendEncode(w.body, b)
	w.raw(`"`)
}

// value adds an attribute value.
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

// attributes adds attributes as an object.
func (w *writer) attributes(attributes map[string]types.AttributeValue) {
	writeMap(w, attributes, w.value)
}

// writeMap adds a map as an object with sorted names, so that equal requests have equal bytes.
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

// end completes the body of a read and returns it.
func (w *writer) end(a asking) ([]byte, bool) {
	if a.priced {
		w.raw(`,"ReturnConsumedCapacity":"TOTAL"`)
	}
	w.raw(`}`)
	return w.body, w.ok
}

// frame is the approximate size of a request without its keys, in bytes.
const frame = 256

// getItemBody returns the body of a GetItem. It reports false if the SDK must encode the request,
// as the other functions for bodies do.
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

// batchBody returns the body of a BatchGetItem.
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

// queryBody returns the body of a Query.
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

// transactGetBody returns the body of a TransactGetItems for one record.
func transactGetBody(table string, k model.Keys) ([]byte, bool) {
	w := newWriter(frame + len(k.PK) + len(k.SK))
	w.raw(`{"TransactItems":[{"Get":{"TableName":`)
	w.string(table)
	w.raw(`,"Key":`)
	w.key(k)
	w.raw(`}}]}`)
	return w.body, w.ok
}

// transactWriteBody returns the body of a TransactWriteItems.
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

// condition adds the table name and the condition, which all actions have, and ends the action.
func (w *writer) condition(table, expression *string, names map[string]string, values map[string]types.AttributeValue, onFailure types.ReturnValuesOnConditionCheckFailure) {
	w.optional("TableName", table)
	w.optional("ConditionExpression", expression)
	if names != nil {
		w.member("ExpressionAttributeNames")
		writeMap(w, names, w.string)
	}
	if values != nil {
		w.member("ExpressionAttributeValues")
		w.attributes(values)
	}
	if onFailure != "" {
		w.member("ReturnValuesOnConditionCheckFailure")
		w.string(string(onFailure))
	}
	w.raw(`}`)
}

// optional adds a member with a string, or nothing if the string is nil.
func (w *writer) optional(name string, text *string) {
	if text != nil {
		w.member(name)
		w.string(*text)
	}
}
