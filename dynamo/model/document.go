package model

import (
	"bytes"
	"unsafe"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Document is a parsed DynamoDB response. Its nodes contain offsets into Body instead of pointers,
// so that the garbage collector does not scan them.
type Document struct {
	// Body is the response body. After it, the parser appends the decoded form of each binary value
	// and of each string with escape sequences. Body does not change after parsing.
	Body  []byte
	Nodes []Node
}

// Node is an attribute value. If the value is a list, set or map, the nodes of its elements follow.
// End is the index of the first node after them.
type Node struct {
	Name, NameEnd uint32
	Text, TextEnd uint32
	End           uint32
	Kind          Kind
}

// Kind is the DynamoDB type of a value.
type Kind byte

// The types of DynamoDB values. kindNone is the kind of an absent value.
const (
	kindNone Kind = iota
	KindS
	KindN
	KindB
	KindBOOL
	KindNULL
	KindSS
	KindNS
	KindBS
	KindL
	KindM
)

// Item is a record in a response, or a map inside a record. Its attributes are the nodes from the
// index First up to, but not including, the index End.
type Item struct {
	Doc        *Document
	First, End uint32
}

// Span returns the text between two offsets in Body. The text keeps the whole document in memory.
func (d *Document) Span(from, to uint32) string {
	if from == to {
		return ""
	}
	// This is safe because Body is not modified after parsing.
	return unsafe.String(&d.Body[from], int(to-from))
}

// kind returns the type of the node i.Doc.Nodes[at]. If there is no such node, it returns kindNone.
func (i Item) kind(at uint32) Kind {
	if int(at) >= len(i.Doc.Nodes) {
		return kindNone
	}
	return i.Doc.Nodes[at].Kind
}

// Find returns the index of an attribute's node. If the attribute is absent, Find returns false.
func (i Item) Find(name string) (uint32, bool) {
	for at := i.First; at < i.End; {
		n := &i.Doc.Nodes[at]
		if n.NameEnd-n.Name == uint32(len(name)) && i.Doc.Span(n.Name, n.NameEnd) == name {
			return at, true
		}
		at = n.End
	}
	return 0, false
}

func (i Item) elements(at uint32) Item {
	return Item{Doc: i.Doc, First: at + 1, End: i.Doc.Nodes[at].End}
}

func (i Item) len() int {
	n := 0
	for at := i.First; at < i.End; at = i.Doc.Nodes[at].End {
		n++
	}
	return n
}

// forEach calls take with the index and node of each attribute or element, until it returns false.
func (i Item) forEach(take func(at uint32, n *Node) bool) {
	for at := i.First; at < i.End; {
		n := &i.Doc.Nodes[at]
		if !take(at, n) {
			return
		}
		at = n.End
	}
}

// toRecord converts the item to AWS SDK types. The result shares no memory with the document.
func (i Item) toRecord() Record {
	r := make(Record, i.len())
	i.forEach(func(at uint32, n *Node) bool {
		r[string(i.Doc.Body[n.Name:n.NameEnd])] = i.Doc.attributeValue(at)
		return true
	})
	return r
}

func (d *Document) attributeValue(at uint32) types.AttributeValue {
	n := &d.Nodes[at]
	text := func(n *Node) string { return string(d.Body[n.Text:n.TextEnd]) }
	inside := Item{Doc: d, First: at + 1, End: n.End}
	switch n.Kind {
	case KindS:
		return &types.AttributeValueMemberS{Value: text(n)}
	case KindN:
		return &types.AttributeValueMemberN{Value: text(n)}
	case KindB:
		return &types.AttributeValueMemberB{Value: bytes.Clone(d.Body[n.Text:n.TextEnd])}
	case KindBOOL:
		return &types.AttributeValueMemberBOOL{Value: text(n) == JSONTrue}
	case KindNULL:
		return &types.AttributeValueMemberNULL{Value: text(n) == JSONTrue}
	case KindSS, KindNS:
		set := []string{}
		inside.forEach(func(_ uint32, n *Node) bool { set = append(set, text(n)); return true })
		if n.Kind == KindSS {
			return &types.AttributeValueMemberSS{Value: set}
		}
		return &types.AttributeValueMemberNS{Value: set}
	case KindBS:
		set := [][]byte{}
		inside.forEach(func(_ uint32, n *Node) bool { set = append(set, bytes.Clone(d.Body[n.Text:n.TextEnd])); return true })
		return &types.AttributeValueMemberBS{Value: set}
	case KindL:
		list := []types.AttributeValue{}
		inside.forEach(func(at uint32, _ *Node) bool { list = append(list, d.attributeValue(at)); return true })
		return &types.AttributeValueMemberL{Value: list}
	case KindM:
		return &types.AttributeValueMemberM{Value: inside.toRecord()}
	}
	return nil
}

// size returns the size of the record in bytes. It uses the same formula as SizeOf.
func (i Item) size() int {
	total := 0
	i.forEach(func(at uint32, n *Node) bool {
		total += int(n.NameEnd-n.Name) + i.Doc.sizeOf(at)
		return true
	})
	return total
}

func (d *Document) sizeOf(at uint32) int {
	n := &d.Nodes[at]
	inside := Item{Doc: d, First: at + 1, End: n.End}
	total := 0
	switch n.Kind {
	case KindS, KindB:
		return int(n.TextEnd - n.Text)
	case KindN:
		return sizeOfNumber(d.Span(n.Text, n.TextEnd))
	case KindBOOL, KindNULL:
		return 1
	case KindL, KindM:
		total = 3
		inside.forEach(func(at uint32, n *Node) bool {
			total += 1 + int(n.NameEnd-n.Name) + d.sizeOf(at)
			return true
		})
	default:
		inside.forEach(func(at uint32, _ *Node) bool { total += d.sizeOf(at); return true })
	}
	return total
}

// MaxDepth is the maximum depth of nested lists and maps that DynamoDB accepts.
const MaxDepth = 32

// The booleans in JSON.
const (
	JSONTrue  = "true"
	JSONFalse = "false"
)
