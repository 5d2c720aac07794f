package model

import (
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Range is a range of positions for a Query, from From, inclusive, to To, exclusive. The bounds are
// in ascending order for every direction. An empty value means no bound.
type Range struct{ From, To string }

// Empty reports whether no key lies in b. An empty range must not be sent: DynamoDB rejects a range
// whose lower bound exceeds its upper bound.
func (b Range) Empty() bool {
	last := maxText
	if b.To != "" {
		last = JustBefore(b.To)
	}
	return last == "" || b.From > last
}

// Remaining returns the part of b that remains after position last has been read in this direction.
func (b Range) Remaining(last string, forward bool) Range {
	if forward {
		b.From = JustAfter(last)
	} else {
		b.To = last
	}
	return b
}

// PrefixRange returns the positions that begin with a text. The text contains no invisible
// characters.
func PrefixRange(text string) Range {
	last, size := utf8.DecodeLastRuneInString(text)
	if last++; last == 0xD800 { // surrogates are not valid text
		last = '\uE000'
	}
	return Range{From: text, To: text[:len(text)-size] + string(last)}
}

// maxText sorts after every character that a key can contain.
const maxText = string(utf8.MaxRune)

// JustAfter returns the smallest text greater than s.
func JustAfter(s string) string { return s + "\x00" }

// JustBefore returns a text less than s with no key between them, if no key contains the last
// Unicode character. It turns an exclusive upper bound into an inclusive one, which BETWEEN needs.
// s must not be empty.
func JustBefore(s string) string {
	last, size := utf8.DecodeLastRuneInString(s)
	rest := s[:len(s)-size]
	switch last {
	case 0:
		return rest
	case '\uE000': // skips the surrogates, which are not valid text
		return rest + "\uD7FF" + maxText
	default:
		return rest + string(last-1) + maxText
	}
}

// KeyCondition is the key condition of a Query and the values of its placeholders. From and To are
// empty if the condition does not use them.
type KeyCondition struct{ Text, Partition, From, To string }

// Values returns the values of the condition's placeholders.
func (c KeyCondition) Values() map[string]types.AttributeValue {
	values := map[string]types.AttributeValue{":pk": Str(c.Partition)}
	if c.From != "" {
		values[":from"] = Str(c.From)
	}
	if c.To != "" {
		values[":to"] = Str(c.To)
	}
	return values
}

// NewKeyCondition returns the condition for the sort keys of a partition that begin with prefix and
// lie in b. Pages continue by condition instead of by ExclusiveStartKey. An ExclusiveStartKey needs
// a full key, and its record may have moved to another partition.
func NewKeyCondition(p *AccessPattern, partition, prefix string, b Range) KeyCondition {
	pk, sk := p.KeyAttributes()
	c := KeyCondition{Partition: partition}
	equal := pk + " = :pk"
	from, to := prefix+b.From, ""
	if b.To != "" {
		to = JustBefore(prefix + b.To)
	} else if prefix != "" {
		to = prefix + maxText
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
