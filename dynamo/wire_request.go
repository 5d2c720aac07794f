package dynamo

import (
	"strconv"
	"unicode/utf8"
)

// The operations as requests name them, in header values that all requests share.
type operations struct{ getItem, batchGetItem, query []string }

// named are the operations' names. Source: the SDK's requests.
func named() operations {
	const version = "DynamoDB_20120810."
	return operations{getItem: []string{version + "GetItem"}, batchGetItem: []string{version + "BatchGetItem"}, query: []string{version + "Query"}}
}

// asking is how a request reads.
type asking struct {
	table string
	// consistent asks for a consistent read, priced for what it costs.
	consistent, priced bool
}

// writer writes a request's JSON. It is not ok where a text is not UTF-8, of which only the SDK knows what becomes.
type writer struct {
	body []byte
	ok   bool
}

func newWriter(size int) *writer { return &writer{body: make([]byte, 0, size), ok: true} }

// raw adds JSON as it is.
func (w *writer) raw(text string) { w.body = append(w.body, text...) }

// string adds a string.
func (w *writer) string(s string) {
	const hexadecimal = "0123456789abcdef"
	w.ok = w.ok && utf8.ValidString(s)
	w.body = append(w.body, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			w.body = append(w.body, '\\', c)
		case c < 0x20:
			w.body = append(w.body, '\\', 'u', '0', '0', hexadecimal[c>>4], hexadecimal[c&15])
		default:
			w.body = append(w.body, c)
		}
	}
	w.body = append(w.body, '"')
}

// text adds a string as an attribute's value.
func (w *writer) text(s string) {
	w.raw(`{"S":`)
	w.string(s)
	w.raw(`}`)
}

// key adds a primary key.
func (w *writer) key(k keys) {
	w.raw(`{"` + attrPK + `":`)
	w.text(k.PK)
	w.raw(`,"` + attrSK + `":`)
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
func getItemBody(a asking, k keys) ([]byte, bool) {
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
func batchBody(a asking, ks []keys) ([]byte, bool) {
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
	w := newWriter(frame + len(q.where.text) + len(q.where.partition) + len(q.where.from) + len(q.where.to))
	w.raw(`{"TableName":`)
	w.string(a.table)
	if q.pattern.Index != "" {
		w.raw(`,"IndexName":`)
		w.string(q.pattern.Index)
	}
	w.raw(`,"KeyConditionExpression":`)
	w.string(q.where.text)
	w.raw(`,"ExpressionAttributeValues":{":pk":`)
	w.text(q.where.partition)
	if q.where.from != "" {
		w.raw(`,":from":`)
		w.text(q.where.from)
	}
	if q.where.to != "" {
		w.raw(`,":to":`)
		w.text(q.where.to)
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
