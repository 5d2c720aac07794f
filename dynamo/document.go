package dynamo

import (
	"bytes"
	"unsafe"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// document is an answer of DynamoDB's, taken apart without copies: its bytes, and where in them
// each value stands. Nodes have offsets instead of strings, so that the garbage collector has
// nothing to look for in them.
type document struct {
	// body is the answer. Behind it stand the texts that had to be unescaped or decoded; once the
	// answer is taken apart, no byte of it is written again.
	body  []byte
	nodes []node
}

// node is a value. The elements of a list, a set or a map are the nodes behind it, up to end.
type node struct {
	name, nameEnd uint32
	text, textEnd uint32
	end           uint32
	kind          kind
}

// kind is the type of a value.
type kind byte

// The types that DynamoDB has; kindNone is that of what is not there.
const (
	kindNone kind = iota
	kindS
	kindN
	kindB
	kindBOOL
	kindNULL
	kindSS
	kindNS
	kindBS
	kindL
	kindM
)

// item is a record, or a map in one, in an answer: the nodes from first to end.
type item struct {
	doc        *document
	first, end uint32
}

// span is the text between two offsets. It shares the document's bytes: who keeps it for longer
// than a request keeps them all.
func (d *document) span(from, to uint32) string {
	if from == to {
		return ""
	}
	// The bytes are not written any more, so the text does not change.
	return unsafe.String(&d.body[from], int(to-from))
}

// kind is the type of a node; that of number 0 where there is none is nobody's.
func (i item) kind(at uint32) kind {
	if int(at) >= len(i.doc.nodes) {
		return kindNone
	}
	return i.doc.nodes[at].kind
}

// find gives the number of a name's node.
func (i item) find(name string) (uint32, bool) {
	for at := i.first; at < i.end; {
		n := &i.doc.nodes[at]
		if n.nameEnd-n.name == uint32(len(name)) && i.doc.span(n.name, n.nameEnd) == name {
			return at, true
		}
		at = n.end
	}
	return 0, false
}

// inside are the elements of a list, a set or a map.
func (i item) inside(at uint32) item {
	return item{doc: i.doc, first: at + 1, end: i.doc.nodes[at].end}
}

// len is how many values there are.
func (i item) len() int {
	n := 0
	for at := i.first; at < i.end; at = i.doc.nodes[at].end {
		n++
	}
	return n
}

// each gives all values with their nodes' numbers until take has enough.
func (i item) each(take func(at uint32, n *node) bool) {
	for at := i.first; at < i.end; {
		n := &i.doc.nodes[at]
		if !take(at, n) {
			return
		}
		at = n.end
	}
}

// attributes makes of it what the SDK would have made of it. Nothing in it shares the answer's
// bytes.
func (i item) attributes() record {
	r := make(record, i.len())
	i.each(func(at uint32, n *node) bool {
		r[string(i.doc.body[n.name:n.nameEnd])] = i.doc.attribute(at)
		return true
	})
	return r
}

// attribute is the value of a node as the SDK's.
func (d *document) attribute(at uint32) types.AttributeValue {
	n := &d.nodes[at]
	text := func(n *node) string { return string(d.body[n.text:n.textEnd]) }
	inside := item{doc: d, first: at + 1, end: n.end}
	switch n.kind {
	case kindS:
		return &types.AttributeValueMemberS{Value: text(n)}
	case kindN:
		return &types.AttributeValueMemberN{Value: text(n)}
	case kindB:
		return &types.AttributeValueMemberB{Value: bytes.Clone(d.body[n.text:n.textEnd])}
	case kindBOOL:
		return &types.AttributeValueMemberBOOL{Value: text(n) == jsonTrue}
	case kindNULL:
		return &types.AttributeValueMemberNULL{Value: text(n) == jsonTrue}
	case kindSS, kindNS:
		set := []string{}
		inside.each(func(_ uint32, n *node) bool { set = append(set, text(n)); return true })
		if n.kind == kindSS {
			return &types.AttributeValueMemberSS{Value: set}
		}
		return &types.AttributeValueMemberNS{Value: set}
	case kindBS:
		set := [][]byte{}
		inside.each(func(_ uint32, n *node) bool { set = append(set, bytes.Clone(d.body[n.text:n.textEnd])); return true })
		return &types.AttributeValueMemberBS{Value: set}
	case kindL:
		list := []types.AttributeValue{}
		inside.each(func(at uint32, _ *node) bool { list = append(list, d.attribute(at)); return true })
		return &types.AttributeValueMemberL{Value: list}
	case kindM:
		return &types.AttributeValueMemberM{Value: inside.attributes()}
	}
	return nil
}

// size is the record's size in bytes, as sizeOf counts it.
func (i item) size() int {
	total := 0
	i.each(func(at uint32, n *node) bool {
		total += int(n.nameEnd-n.name) + i.doc.sizeOf(at)
		return true
	})
	return total
}

func (d *document) sizeOf(at uint32) int {
	n := &d.nodes[at]
	inside := item{doc: d, first: at + 1, end: n.end}
	total := 0
	switch n.kind {
	case kindS, kindB:
		return int(n.textEnd - n.text)
	case kindN:
		return sizeOfNumber(d.span(n.text, n.textEnd))
	case kindBOOL, kindNULL:
		return 1
	case kindL, kindM:
		total = 3
		inside.each(func(at uint32, n *node) bool {
			total += 1 + int(n.nameEnd-n.name) + d.sizeOf(at)
			return true
		})
	default:
		inside.each(func(at uint32, _ *node) bool { total += d.sizeOf(at); return true })
	}
	return total
}

const (
	jsonTrue  = "true"
	jsonFalse = "false"
)
