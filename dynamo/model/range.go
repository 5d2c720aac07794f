package model

import (
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Range are the positions of a Query, from inclusive to exclusive, in ascending order whatever the
// list's; empty for none.
type Range struct{ From, To string }

// Empty reports whether no key lies in b. Such a range must not be read: DynamoDB refuses one whose
// lower end is above its upper end, as those of neighbouring positions are, and one that ends
// before every key.
func (b Range) Empty() bool {
	last := highest
	if b.To != "" {
		last = JustBefore(b.To)
	}
	return last == "" || b.From > last
}

// Behind returns what is left of b when last has been read, forward or backward.
func (b Range) Behind(last string, forward bool) Range {
	if forward {
		b.From = JustAfter(last)
	} else {
		b.To = last
	}
	return b
}

// BeginningWith returns the positions that begin with a text, which has no character that shows
// nothing.
func BeginningWith(text string) Range {
	last, size := utf8.DecodeLastRuneInString(text)
	if last++; last == 0xD800 { // the surrogates are no text
		last = '\uE000'
	}
	return Range{From: text, To: text[:len(text)-size] + string(last)}
}

// highest sorts behind every character that a key can hold.
const highest = string(utf8.MaxRune)

// JustAfter is the smallest text above s.
func JustAfter(s string) string { return s + "\x00" }

// JustBefore is a text below s with no key between the two, as long as no key has the last
// character that Unicode has. BETWEEN includes its ends, so an exclusive end is its upper end. s is
// not empty.
func JustBefore(s string) string {
	last, size := utf8.DecodeLastRuneInString(s)
	rest := s[:len(s)-size]
	switch last {
	case 0:
		return rest
	case '\uE000': // what is below it in number, the surrogates, is no text
		return rest + "\uD7FF" + highest
	default:
		return rest + string(last-1) + highest
	}
}

// KeyRange is the condition of a Query on its keys, and what its names stand for; empty where it
// does not name it.
type KeyRange struct{ Text, Partition, From, To string }

// Values are the condition's values, by their names.
func (c KeyRange) Values() map[string]types.AttributeValue {
	values := map[string]types.AttributeValue{":pk": Str(c.Partition)}
	if c.From != "" {
		values[":from"] = Str(c.From)
	}
	if c.To != "" {
		values[":to"] = Str(c.To)
	}
	return values
}

// KeyRangeOf is the condition for the sort keys of a partition that begin with prefix and lie in
// b. It names the continuation by condition, never by ExclusiveStartKey, which would need a key
// whose record may have moved to another partition since.
func KeyRangeOf(p *AccessPattern, partition, prefix string, b Range) KeyRange {
	pk, sk := p.KeyAttributes()
	c := KeyRange{Partition: partition}
	equal := pk + " = :pk"
	from, to := prefix+b.From, ""
	if b.To != "" {
		to = JustBefore(prefix + b.To)
	} else if prefix != "" {
		to = prefix + highest
	}
	switch {
	case b == Range{} && prefix == "":
		c.Text = equal
	case b == Range{}:
		c.Text, c.From = equal+" AND begins_with("+sk+", :from)", from
	case from == "":
		c.Text, c.To = equal+" AND "+sk+" <= :to", to
	case to == "":
		c.Text, c.From = equal+" AND "+sk+" >= :from", from
	default:
		c.Text, c.From, c.To = equal+" AND "+sk+" BETWEEN :from AND :to", from, to
	}
	return c
}
