package table

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// maxResponseBytes is the maximum size of a response that the fast path parses. The largest
// responses of DynamoDB contain 16 MB of records.
const maxResponseBytes = 64 << 20

// maxAttributes is the maximum number of attributes in a record or map. The parser searches
// attribute names linearly, so it would need seconds for thousands of attributes.
const maxAttributes = 512

// readResult is the parsed content of a response.
type readResult struct {
	// Records are the records of a Query or a batch, in the order of the response. For a GetItem or
	// TransactGetItems request, there is at most one record.
	Records []model.Reader
	// more is true if a Query stopped before the end of its key range.
	more bool
	// units is the consumed capacity that DynamoDB reported. It is valid only if unitsReported is
	// true.
	units         float64
	unitsReported bool
	// transactionReads is the number of read units that DynamoDB reported for a transaction. A
	// TransactWriteItems request consumes read units only if an earlier attempt has already committed
	// the transaction.
	transactionReads float64
	// unprocessed contains the keys of a BatchGetItem request that DynamoDB did not process.
	unprocessed []model.Keys
}

// responseParser parses the common forms of DynamoDB's JSON responses. Each method parses the JSON
// at pos and advances pos. If a method returns false, the AWS SDK parses the response instead.
type responseParser struct {
	doc *model.Document
	// body is the response. doc.Body starts with the same bytes. After them, the parser appends
	// decoded base64 and decoded strings with escape sequences.
	body []byte
	pos  int
	// noEscapes is true if the response contains no escape sequences.
	noEscapes bool
}

// parseResponse parses a response, or returns false if the AWS SDK must parse it. The records refer
// to body, so the caller must not modify body. capacity is the expected number of records.
func parseResponse(body []byte, table string, capacity int) (readResult, bool) {
	if len(body) > maxResponseBytes || !isValidText(body) {
		return readResult{}, false
	}
	p := responseParser{doc: &model.Document{Body: body[:len(body):len(body)]}, body: body, noEscapes: bytes.IndexByte(body, '\\') < 0}
	// Estimate the number of attribute values, to allocate memory for them. Each value has an opening
	// brace and takes at least 8 bytes, like {"S":""}.
	p.doc.Nodes = make([]model.Node, 0, min(bytes.Count(body, []byte{'{'}), len(body)/8))
	a := readResult{}
	ok := p.object(func(name string) bool {
		switch name {
		case "Item":
			a.Records = make([]model.Reader, 0, 1)
			return p.record(&a.Records)
		case "Items":
			return p.records(&a.Records, capacity)
		case "Responses":
			if p.skipSpace() == '[' {
				return p.elements(func() bool { return p.object(func(name string) bool { return name == "Item" && p.record(&a.Records) }) })
			}
			return p.object(func(name string) bool { return name == table && p.records(&a.Records, capacity) })
		case "UnprocessedKeys":
			// Return false if there are unprocessed keys. The AWS SDK then parses the response, which is
			// rare.
			return p.object(func(string) bool { return false })
		case "LastEvaluatedKey":
			var last []model.Reader
			ok := p.record(&last)
			a.more = ok && last[0].Item.First < last[0].Item.End
			return ok
		case "ConsumedCapacity":
			return p.consumedCapacity(&a)
		case "Count", "ScannedCount":
			text, ok := p.number()
			if _, err := strconv.ParseInt(text, 10, 32); err != nil {
				return false
			}
			return ok
		}
		return false
	})
	return a, ok && p.skipSpace() == 0
}

// isValidText reports whether text is valid UTF-8 without control characters. JSON does not allow
// control characters in strings. Between values, JSON allows tabs and line breaks, but DynamoDB
// sends none.
func isValidText(text []byte) bool {
	const (
		each = 0x0101010101010101 // a 1 in each byte
		high = 0x80 * each        // the high bit of each byte
	)
	ascii := true
	rest := text
	for ; len(rest) >= 8; rest = rest[8:] {
		eight := binary.LittleEndian.Uint64(rest)
		// The condition is true if one of the eight bytes is below 0x20. The subtraction sets the high
		// bit of such a byte. &^eight excludes bytes above 0x7f, because their high bit was already set.
		if (eight-0x20*each)&^eight&high != 0 {
			return false
		}
		ascii = ascii && eight&high == 0
	}
	for _, c := range rest {
		if c < 0x20 {
			return false
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	return ascii || utf8.Valid(text)
}

// skipSpace skips spaces and returns the next byte. It returns 0 at the end of the response.
func (p *responseParser) skipSpace() byte {
	for p.pos < len(p.body) {
		if c := p.body[p.pos]; c != ' ' {
			return c
		}
		p.pos++
	}
	return 0
}

// consume skips any spaces and the byte c after them. If the next byte is not c, it returns false.
func (p *responseParser) consume(c byte) bool {
	if p.pos < len(p.body) && p.body[p.pos] == c {
		p.pos++
		return true
	}
	return p.consumeAfterSpace(c)
}

// consumeAfterSpace is the slow part of consume, for the rare case that spaces precede c.
func (p *responseParser) consumeAfterSpace(c byte) bool {
	if p.pos >= len(p.body) || p.body[p.pos] != ' ' || p.skipSpace() != c {
		return false
	}
	p.pos++
	return true
}

// consumeLiteral skips the given text. If the text is not at pos, it returns false.
func (p *responseParser) consumeLiteral(text string) bool {
	if len(p.body)-p.pos < len(text) || string(p.body[p.pos:p.pos+len(text)]) != text {
		return false
	}
	p.pos += len(text)
	return true
}

// object parses an object. It calls member with the name of each member. The function member parses
// the value.
func (p *responseParser) object(member func(name string) bool) bool {
	if !p.consume('{') {
		return false
	}
	if p.consume('}') {
		return true
	}
	names := make([]string, 0, 8)
	for {
		from, to, ok := p.string()
		if !ok || !p.consume(':') {
			return false
		}
		name := p.doc.Span(from, to)
		// Return false if a member is duplicate or unknown, or if there are more than 8 members. The AWS
		// SDK then parses the response.
		if slices.Contains(names, name) || len(names) == cap(names) || !member(name) {
			return false
		}
		names = append(names, name)
		if !p.consume(',') {
			return p.consume('}')
		}
	}
}

// records parses an array of records and stores them in *to.
func (p *responseParser) records(to *[]model.Reader, capacity int) bool {
	if !p.consume('[') {
		return false
	}
	*to = make([]model.Reader, 0, capacity)
	if p.consume(']') {
		return true
	}
	for {
		if !p.record(to) {
			return false
		}
		if !p.consume(',') {
			return p.consume(']')
		}
	}
}

// record parses a record and appends it to *to.
func (p *responseParser) record(to *[]model.Reader) bool {
	i := model.Item{Doc: p.doc, First: uint32(len(p.doc.Nodes))}
	if !p.attributes(0) {
		return false
	}
	i.End = uint32(len(p.doc.Nodes))
	*to = append(*to, model.Reader{Item: i})
	return true
}

// attributes parses the attributes of a record or a map and appends them to doc.Nodes.
func (p *responseParser) attributes(depth int) bool {
	if !p.consume('{') {
		return false
	}
	if p.consume('}') {
		return true
	}
	first, names := uint32(len(p.doc.Nodes)), uint64(0)
	for n := 1; ; n++ {
		from, to, ok := p.string()
		if !ok || !p.consume(':') {
			return false
		}
		name := p.doc.Span(from, to)
		bit := nameHashBit(name)
		if n > maxAttributes {
			return false
		}
		if names&bit != 0 {
			// Return false if an attribute name is duplicate. The AWS SDK then parses the response.
			if _, twice := (model.Item{Doc: p.doc, First: first, End: uint32(len(p.doc.Nodes))}).Find(name); twice {
				return false
			}
		}
		names |= bit
		if !p.value(model.Node{Name: from, NameEnd: to}, depth) {
			return false
		}
		if !p.consume(',') {
			return p.consume('}')
		}
	}
}

// nameHashBit returns a hash of an attribute name, with exactly one bit set. The parser searches
// for a duplicate name only if two names have the same bit.
func nameHashBit(name string) uint64 {
	n := len(name)
	if n == 0 {
		return 1
	}
	return 1 << ((uint(name[0])*7 + uint(name[n-1])*3 + uint(name[n/2])*5 + uint(n)) % 64)
}

// value parses an attribute value, such as {"S":"text"}, and appends it to doc.Nodes. n contains
// the name of the attribute, which is empty for an element of a list.
func (p *responseParser) value(n model.Node, depth int) bool {
	if p.simpleValue(n) {
		return true
	}
	if !p.consume('{') {
		return false
	}
	from, to, ok := p.string()
	if !ok || !p.consume(':') {
		return false
	}
	at := len(p.doc.Nodes)
	p.doc.Nodes = append(p.doc.Nodes, n)
	switch p.doc.Span(from, to) {
	case "S":
		n.Kind = model.KindS
		n.Text, n.TextEnd, ok = p.string()
	case "N":
		n.Kind = model.KindN
		n.Text, n.TextEnd, ok = p.string()
	case "B":
		n.Kind = model.KindB
		n.Text, n.TextEnd, ok = p.base64()
	case "BOOL":
		n.Kind = model.KindBOOL
		n.Text, n.TextEnd, ok = p.boolean()
	case "NULL":
		n.Kind = model.KindNULL
		n.Text, n.TextEnd, ok = p.boolean()
	case "SS":
		n.Kind, ok = model.KindSS, p.elements(func() bool { return p.setElement(model.KindS, (*responseParser).string) })
	case "NS":
		n.Kind, ok = model.KindNS, p.elements(func() bool { return p.setElement(model.KindN, (*responseParser).string) })
	case "BS":
		n.Kind, ok = model.KindBS, p.elements(func() bool { return p.setElement(model.KindB, (*responseParser).base64) })
	case "L":
		n.Kind, ok = model.KindL, depth < model.MaxDepth && p.elements(func() bool { return p.value(model.Node{}, depth+1) })
	case "M":
		n.Kind, ok = model.KindM, depth < model.MaxDepth && p.attributes(depth+1)
	default:
		return false
	}
	n.End = uint32(len(p.doc.Nodes))
	p.doc.Nodes[at] = n
	return ok && p.consume('}')
}

// simpleValue is a faster version of the method named value, for the most frequent forms:
// {"S":"..."} and {"N":"..."}. If the value has another form, or if the response contains any
// escape sequence, simpleValue returns false and changes nothing.
func (p *responseParser) simpleValue(n model.Node) bool {
	rest := p.body[p.pos:]
	if len(rest) < len(`{"S":""}`) || !p.noEscapes || rest[0] != '{' || rest[1] != '"' || rest[3] != '"' || rest[4] != ':' || rest[5] != '"' {
		return false
	}
	switch rest[2] {
	case 'S':
		n.Kind = model.KindS
	case 'N':
		n.Kind = model.KindN
	default:
		return false
	}
	length := bytes.IndexByte(rest[6:], '"')
	if length < 0 || len(rest) < 8+length || rest[7+length] != '}' {
		return false
	}
	n.Text = uint32(p.pos + 6)
	n.TextEnd = n.Text + uint32(length)
	n.End = uint32(len(p.doc.Nodes)) + 1
	p.doc.Nodes = append(p.doc.Nodes, n)
	p.pos += 8 + length
	return true
}

// elements parses an array. It calls element to parse each element.
func (p *responseParser) elements(element func() bool) bool {
	if !p.consume('[') {
		return false
	}
	if p.consume(']') {
		return true
	}
	for {
		if !element() {
			return false
		}
		if !p.consume(',') {
			return p.consume(']')
		}
	}
}

// setElement parses an element of a DynamoDB set and appends it to doc.Nodes.
func (p *responseParser) setElement(k model.Kind, read func(*responseParser) (from, to uint32, ok bool)) bool {
	from, to, ok := read(p)
	p.doc.Nodes = append(p.doc.Nodes, model.Node{Text: from, TextEnd: to, Kind: k, End: uint32(len(p.doc.Nodes)) + 1})
	return ok
}

// string parses a string. It returns the start and the end of the string's text in doc.Body.
func (p *responseParser) string() (from, to uint32, ok bool) {
	if !p.consume('"') {
		return 0, 0, false
	}
	start := p.pos
	length := bytes.IndexByte(p.body[start:], '"')
	if length < 0 {
		return 0, 0, false
	}
	if p.noEscapes || bytes.IndexByte(p.body[start:start+length], '\\') < 0 {
		p.pos += length + 1
		return uint32(start), uint32(start + length), true
	}
	return p.unescape()
}

// unescape parses a string with escape sequences, after its opening quote. It appends the decoded
// text to doc.Body and returns the start and the end of this text.
func (p *responseParser) unescape() (from, to uint32, ok bool) {
	d := p.doc
	from = uint32(len(d.Body))
	for p.pos < len(p.body) {
		c := p.body[p.pos]
		switch {
		case c == '"':
			p.pos++
			return from, uint32(len(d.Body)), true
		case c != '\\':
			d.Body = append(d.Body, c)
			p.pos++
			continue
		case p.pos+1 == len(p.body):
			return 0, 0, false
		}
		switch escaped := p.body[p.pos+1]; escaped {
		case '"', '\\', '/':
			d.Body = append(d.Body, escaped)
		case 'b':
			d.Body = append(d.Body, '\b')
		case 'f':
			d.Body = append(d.Body, '\f')
		case 'n':
			d.Body = append(d.Body, '\n')
		case 'r':
			d.Body = append(d.Body, '\r')
		case 't':
			d.Body = append(d.Body, '\t')
		case 'u':
			r, ok := decodeUnicodeEscape(p.body[p.pos:])
			if ok && utf16.IsSurrogate(r) {
				p.pos += 6
				second, _ := decodeUnicodeEscape(p.body[p.pos:])
				r = utf16.DecodeRune(r, second)
				ok = r != utf8.RuneError
			}
			if !ok {
				return 0, 0, false
			}
			d.Body = utf8.AppendRune(d.Body, r)
			p.pos += 4
		default:
			return 0, 0, false
		}
		p.pos += 2
	}
	return 0, 0, false
}

// base64 parses a base64 string. It appends the decoded bytes to doc.Body and returns the start and
// the end of these bytes.
func (p *responseParser) base64() (from, to uint32, ok bool) {
	if from, to, ok = p.string(); !ok {
		return 0, 0, false
	}
	d := p.doc
	start := len(d.Body)
	decoded, err := base64.StdEncoding.AppendDecode(d.Body, d.Body[from:to])
	if err != nil {
		return 0, 0, false
	}
	d.Body = decoded
	return uint32(start), uint32(len(d.Body)), true
}

// boolean parses true or false. It returns the start and the end of the literal in doc.Body.
func (p *responseParser) boolean() (from, to uint32, ok bool) {
	p.skipSpace()
	from = uint32(p.pos)
	ok = p.consumeLiteral(model.JSONTrue) || p.consumeLiteral(model.JSONFalse)
	return from, uint32(p.pos), ok
}

// number parses a number and returns its text.
func (p *responseParser) number() (string, bool) {
	p.skipSpace()
	start := p.pos
	for p.pos < len(p.body) && bytes.IndexByte([]byte("-0123456789.eE+"), p.body[p.pos]) >= 0 {
		p.pos++
	}
	text := p.body[start:p.pos]
	// Reject numbers such as 01, +1 and 1., which JSON does not allow but the strconv package accepts.
	digits := bytes.TrimPrefix(text, []byte{'-'})
	if len(digits) == 0 || digits[0] < '0' || digits[0] > '9' || len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' {
		return "", false
	}
	if i := bytes.IndexByte(digits, '.'); i >= 0 && (i+1 == len(digits) || digits[i+1] < '0' || digits[i+1] > '9') {
		return "", false
	}
	return string(text), true
}

// consumedCapacity parses the value of the member ConsumedCapacity. The value is either one object,
// or an array with one object for each table.
func (p *responseParser) consumedCapacity(a *readResult) bool {
	one := func() bool {
		a.unitsReported = true // even if CapacityUnits is missing, because the SDK then assumes 0 units
		return p.object(func(name string) bool {
			switch name {
			case "TableName":
				_, _, ok := p.string()
				return ok
			case "CapacityUnits":
				return p.units(&a.units)
			case "ReadCapacityUnits":
				return p.units(&a.transactionReads)
			case "WriteCapacityUnits":
				var included float64
				return p.units(&included)
			}
			return false
		})
	}
	if p.skipSpace() == '[' {
		return p.elements(one)
	}
	return one()
}

// units parses a number of capacity units and adds the number to *sum.
func (p *responseParser) units(sum *float64) bool {
	text, ok := p.number()
	units, err := strconv.ParseFloat(text, 64)
	*sum += units
	return ok && err == nil
}
