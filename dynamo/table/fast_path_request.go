package table

import (
	"encoding/base64"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// amzTargetHeaders contains the value of the X-Amz-Target header for each DynamoDB operation.
type amzTargetHeaders struct{ getItem, batchGetItem, query, transactGetItems, transactWriteItems []string }

// newAmzTargetHeaders returns the header values that the AWS SDK sends.
func newAmzTargetHeaders() amzTargetHeaders {
	name := func(operation string) []string { return []string{"DynamoDB_20120810." + operation} }
	return amzTargetHeaders{
		getItem: name("GetItem"), batchGetItem: name("BatchGetItem"), query: name("Query"),
		transactGetItems: name("TransactGetItems"), transactWriteItems: name("TransactWriteItems"),
	}
}

// readOptions contains the options of a read.
type readOptions struct {
	table string
	// If consistent is true, the read is strongly consistent. If reportCapacity is true, the response
	// contains the consumed capacity.
	consistent, reportCapacity bool
}

// jsonWriter encodes the JSON body of a request. Its methods append to the body.
type jsonWriter struct {
	body []byte
	// ok becomes false if the writer receives a value that only the AWS SDK can encode. Examples are a
	// string that is not UTF-8, a nil binary value, and a value of an unknown type.
	ok bool
	// names is a stack with the sorted keys of each map that is being encoded. The keys of the
	// innermost map are at the end.
	names []string
}

func newJSONWriter(size int) *jsonWriter { return &jsonWriter{body: make([]byte, 0, size), ok: true} }

// raw appends JSON text unchanged.
func (w *jsonWriter) raw(text string) { w.body = append(w.body, text...) }

// string appends s as a JSON string.
func (w *jsonWriter) string(s string) {
	const hexadecimal = "0123456789abcdef"
	w.ok = w.ok && utf8.ValidString(s)
	w.raw(`"`)
	// copied is the number of bytes of s that have been appended. Consecutive characters that need no
	// escape sequence are appended in one step.
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

// stringAttributeValue appends an attribute value of type S (string).
func (w *jsonWriter) stringAttributeValue(s string) {
	w.raw(`{"S":`)
	w.string(s)
	w.raw(`}`)
}

// comma appends a comma if the current object or array already has an element.
func (w *jsonWriter) comma() {
	if last := w.body[len(w.body)-1]; last != '{' && last != '[' {
		w.raw(`,`)
	}
}

// member appends the name of an object member. If the object already has a member, a comma precedes
// the name.
func (w *jsonWriter) member(name string) {
	w.comma()
	w.string(name)
	w.raw(`:`)
}

// stringArray appends an array of strings.
func (w *jsonWriter) stringArray(texts []string) {
	w.raw(`[`)
	for _, s := range texts {
		w.comma()
		w.string(s)
	}
	w.raw(`]`)
}

// base64Bytes appends bytes as a base64 string. If b is nil, it sets ok to false, so that the AWS
// SDK encodes the request. The SDK encodes nil as null.
func (w *jsonWriter) base64Bytes(b []byte) {
	w.ok = w.ok && b != nil
	w.raw(`"`)
	w.body = base64.StdEncoding.AppendEncode(w.body, b)
	w.raw(`"`)
}

// attributeValue appends an attribute value.
func (w *jsonWriter) attributeValue(v types.AttributeValue) {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		w.stringAttributeValue(v.Value)
		return
	case *types.AttributeValueMemberN:
		w.raw(`{"N":`)
		w.string(v.Value)
	case *types.AttributeValueMemberB:
		w.raw(`{"B":`)
		w.base64Bytes(v.Value)
	case *types.AttributeValueMemberBOOL:
		w.raw(`{"BOOL":`)
		w.body = strconv.AppendBool(w.body, v.Value)
	case *types.AttributeValueMemberNULL:
		w.raw(`{"NULL":`)
		w.body = strconv.AppendBool(w.body, v.Value)
	case *types.AttributeValueMemberSS:
		w.raw(`{"SS":`)
		w.stringArray(v.Value)
	case *types.AttributeValueMemberNS:
		w.raw(`{"NS":`)
		w.stringArray(v.Value)
	case *types.AttributeValueMemberBS:
		w.raw(`{"BS":[`)
		for _, b := range v.Value {
			w.comma()
			w.base64Bytes(b)
		}
		w.raw(`]`)
	case *types.AttributeValueMemberL:
		w.raw(`{"L":[`)
		for _, element := range v.Value {
			w.comma()
			w.attributeValue(element)
		}
		w.raw(`]`)
	case *types.AttributeValueMemberM:
		w.raw(`{"M":`)
		writeMap(w, v.Value, w.attributeValue)
	default:
		w.ok = false
		return
	}
	w.raw(`}`)
}

// attributes appends the attributes of a record as an object.
func (w *jsonWriter) attributes(attributes map[string]types.AttributeValue) {
	writeMap(w, attributes, w.attributeValue)
}

// writeMap appends a map as an object. The names are sorted, so that equal requests have equal
// bytes.
func writeMap[V any](w *jsonWriter, m map[string]V, value func(V)) {
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

// primaryKey appends a primary key.
func (w *jsonWriter) primaryKey(k model.Keys) {
	w.raw(`{"` + model.AttrPK + `":`)
	w.stringAttributeValue(k.PK)
	w.raw(`,"` + model.AttrSK + `":`)
	w.stringAttributeValue(k.SK)
	w.raw(`}`)
}

// finish completes the JSON of a request body. If reportCapacity is true, DynamoDB reports the
// consumed capacity. If the AWS SDK must encode the request, the Boolean result is false.
func (w *jsonWriter) finish(reportCapacity bool) ([]byte, bool) {
	if reportCapacity {
		w.raw(`,"ReturnConsumedCapacity":"TOTAL"`)
	}
	w.raw(`}`)
	return w.body, w.ok
}

// requestOverhead is the approximate size in bytes of a request without its keys.
const requestOverhead = 256

// getItemBody returns the body of a GetItem request. If the AWS SDK must encode the request, the
// Boolean result is false. The Boolean results of the functions for other operations have the same
// meaning.
func getItemBody(a readOptions, k model.Keys) ([]byte, bool) {
	w := newJSONWriter(requestOverhead + len(k.PK) + len(k.SK))
	w.raw(`{"TableName":`)
	w.string(a.table)
	w.raw(`,"Key":`)
	w.primaryKey(k)
	if a.consistent {
		w.raw(`,"ConsistentRead":true`)
	}
	return w.finish(a.reportCapacity)
}

// batchGetBody returns the body of a BatchGetItem request.
func batchGetBody(a readOptions, ks []model.Keys) ([]byte, bool) {
	w := newJSONWriter(requestOverhead + 80*len(ks))
	w.raw(`{"RequestItems":{`)
	w.string(a.table)
	w.raw(`:{"Keys":[`)
	for i, k := range ks {
		if i > 0 {
			w.raw(`,`)
		}
		w.primaryKey(k)
	}
	w.raw(`]`)
	if a.consistent {
		w.raw(`,"ConsistentRead":true`)
	}
	w.raw(`}}`)
	return w.finish(a.reportCapacity)
}

// queryBody returns the body of a Query request.
func queryBody(a readOptions, q queryRequest) ([]byte, bool) {
	w := newJSONWriter(requestOverhead + len(q.keyRange.Text) + len(q.keyRange.Partition) + len(q.keyRange.From) + len(q.keyRange.To))
	w.raw(`{"TableName":`)
	w.string(a.table)
	if q.pattern.Index != "" {
		w.raw(`,"IndexName":`)
		w.string(q.pattern.Index)
	}
	w.raw(`,"KeyConditionExpression":`)
	w.string(q.keyRange.Text)
	w.raw(`,"ExpressionAttributeValues":{":pk":`)
	w.stringAttributeValue(q.keyRange.Partition)
	if q.keyRange.From != "" {
		w.raw(`,":from":`)
		w.stringAttributeValue(q.keyRange.From)
	}
	if q.keyRange.To != "" {
		w.raw(`,":to":`)
		w.stringAttributeValue(q.keyRange.To)
	}
	w.raw(`},"ScanIndexForward":`)
	w.body = strconv.AppendBool(w.body, q.forward)
	w.raw(`,"Limit":`)
	w.body = strconv.AppendInt(w.body, int64(q.limit), 10)
	if a.consistent {
		w.raw(`,"ConsistentRead":true`)
	}
	return w.finish(a.reportCapacity)
}

// transactGetBody returns the body of a TransactGetItems request that reads one record.
func transactGetBody(table string, k model.Keys, reportCapacity bool) ([]byte, bool) {
	w := newJSONWriter(requestOverhead + len(k.PK) + len(k.SK))
	w.raw(`{"TransactItems":[{"Get":{"TableName":`)
	w.string(table)
	w.raw(`,"Key":`)
	w.primaryKey(k)
	w.raw(`}}]`)
	return w.finish(reportCapacity)
}

// transactWriteBody returns the body of a TransactWriteItems request.
func transactWriteBody(token string, items []types.TransactWriteItem, reportCapacity bool) ([]byte, bool) {
	w := newJSONWriter(requestOverhead + 3*requestOverhead*len(items))
	w.names = make([]string, 0, 32)
	w.raw(`{"ClientRequestToken":`)
	w.string(token)
	w.raw(`,"TransactItems":[`)
	for _, item := range items {
		w.comma()
		w.transactionAction(item)
	}
	w.raw(`]`)
	return w.finish(reportCapacity)
}

// transactionAction appends one action of a TransactWriteItems request.
func (w *jsonWriter) transactionAction(item types.TransactWriteItem) {
	w.raw(`{`)
	if c := item.ConditionCheck; c != nil {
		w.member("ConditionCheck")
		w.raw(`{"Key":`)
		w.attributes(c.Key)
		w.tableAndCondition(c.TableName, c.ConditionExpression, c.ExpressionAttributeNames, c.ExpressionAttributeValues, c.ReturnValuesOnConditionCheckFailure)
	}
	if d := item.Delete; d != nil {
		w.member("Delete")
		w.raw(`{"Key":`)
		w.attributes(d.Key)
		w.tableAndCondition(d.TableName, d.ConditionExpression, d.ExpressionAttributeNames, d.ExpressionAttributeValues, d.ReturnValuesOnConditionCheckFailure)
	}
	if p := item.Put; p != nil {
		w.member("Put")
		w.raw(`{"Item":`)
		w.attributes(p.Item)
		w.tableAndCondition(p.TableName, p.ConditionExpression, p.ExpressionAttributeNames, p.ExpressionAttributeValues, p.ReturnValuesOnConditionCheckFailure)
	}
	if u := item.Update; u != nil {
		w.member("Update")
		w.raw(`{"Key":`)
		w.attributes(u.Key)
		w.optionalString("UpdateExpression", u.UpdateExpression)
		w.tableAndCondition(u.TableName, u.ConditionExpression, u.ExpressionAttributeNames, u.ExpressionAttributeValues, u.ReturnValuesOnConditionCheckFailure)
	}
	w.raw(`}`)
}

// tableAndCondition appends the members that all kinds of actions have: the table name and the
// condition. It then appends the closing brace of the action.
func (w *jsonWriter) tableAndCondition(table, expression *string, names map[string]string, values map[string]types.AttributeValue, onFailure types.ReturnValuesOnConditionCheckFailure) {
	w.optionalString("TableName", table)
	w.optionalString("ConditionExpression", expression)
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

// optionalString appends an object member with a string value. If text is nil, it appends nothing.
func (w *jsonWriter) optionalString(name string, text *string) {
	if text != nil {
		w.member(name)
		w.string(*text)
	}
}
