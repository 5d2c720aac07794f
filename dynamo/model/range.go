package model

import (
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Range is a range of sort keys, without their common prefix. From is the lower bound (inclusive),
// and To is the upper bound (exclusive), even if the keys are read in descending order. An empty
// From or To means that the range has no such bound.
type Range struct{ From, To string }

// Empty reports whether no sort key is in b. Do not send an empty range to DynamoDB, because
// DynamoDB rejects a lower bound that is greater than the upper bound.
func (b Range) Empty() bool {
	last := maxChar
	if b.To != "" {
		last = JustBefore(b.To)
	}
	return last == "" || b.From > last
}

// Intersect returns the range of the sort keys that are in both b and c.
func (b Range) Intersect(c Range) Range {
	b.From = max(b.From, c.From)
	if b.To == "" || c.To != "" && c.To < b.To {
		b.To = c.To
	}
	return b
}

// Remaining returns the part of b that has not been read yet. last is the last sort key that was
// read. forward reports whether the keys are read in ascending order.
func (b Range) Remaining(last string, forward bool) Range {
	if forward {
		b.From = JustAfter(last)
	} else {
		b.To = last
	}
	return b
}

// PrefixRange returns the range of sort keys that begin with text. text must be a result of
// commerce.FoldName or commerce.EmailKeyPrefix, and must not be empty.
func PrefixRange(text string) Range {
	last, size := utf8.DecodeLastRuneInString(text)
	if last++; last == 0xD800 { // skip the surrogates, because they are not valid characters
		last = '\uE000'
	}
	return Range{From: text, To: text[:len(text)-size] + string(last)}
}

// maxChar is the last Unicode character in sort order. It ends the upper bound of a range.
const maxChar = string(utf8.MaxRune)

// JustAfter returns the smallest text greater than s.
func JustAfter(s string) string { return s + "\x00" }

// JustBefore converts the exclusive upper bound s to an inclusive upper bound, because the operator
// BETWEEN includes both bounds. It assumes that keys do not contain maxChar. s must not be empty.
func JustBefore(s string) string {
	last, size := utf8.DecodeLastRuneInString(s)
	rest := s[:len(s)-size]
	switch last {
	case 0:
		return rest
	case '\uE000': // skip the surrogates, because they are not valid characters
		return rest + "\uD7FF" + maxChar
	default:
		return rest + string(last-1) + maxChar
	}
}

// KeyCondition is the key condition of a Query, with the values of its placeholders. From is empty
// if Text does not contain :from. To is empty if Text does not contain :to.
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

// NewKeyCondition returns the condition for sort keys that consist of prefix and a text in the
// range b. To continue after a page, pass the remaining range. An ExclusiveStartKey is not
// suitable, because the page's last record may have moved to another partition.
func NewKeyCondition(p *AccessPattern, partition, prefix string, b Range) KeyCondition {
	pk, sk := p.KeyAttributes()
	c := KeyCondition{Partition: partition}
	equal := pk + " = :pk"
	from, to := prefix+b.From, ""
	if b.To != "" {
		to = JustBefore(prefix + b.To)
	} else if prefix != "" {
		to = prefix + maxChar
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
