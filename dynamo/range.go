package dynamo

import (
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// bounds are the positions of a Query, from inclusive to exclusive, in ascending order whatever the
// list's; empty for none.
type bounds struct{ from, to string }

// empty reports whether no key lies in b. Such a range must not be read: DynamoDB refuses one whose
// lower end is above its upper end, as those of neighbouring positions are, and one that ends
// before every key.
func (b bounds) empty() bool {
	last := highest
	if b.to != "" {
		last = justBefore(b.to)
	}
	return last == "" || b.from > last
}

// behind returns what is left of b when last has been read, forward or backward.
func (b bounds) behind(last string, forward bool) bounds {
	if forward {
		b.from = justAfter(last)
	} else {
		b.to = last
	}
	return b
}

// highest sorts behind every character that a key can hold.
const highest = string(utf8.MaxRune)

// justAfter is the smallest text above s.
func justAfter(s string) string { return s + "\x00" }

// justBefore is a text below s with no key between the two, as long as no key has the last
// character that Unicode has. BETWEEN includes its ends, so an exclusive end is its upper end. s is
// not empty.
func justBefore(s string) string {
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

// keyRange is the condition of a Query on its keys, and what its names stand for; empty where it
// does not name it.
type keyRange struct{ text, partition, from, to string }

// values are the condition's values, by their names.
func (c keyRange) values() map[string]types.AttributeValue {
	values := map[string]types.AttributeValue{":pk": str(c.partition)}
	if c.from != "" {
		values[":from"] = str(c.from)
	}
	if c.to != "" {
		values[":to"] = str(c.to)
	}
	return values
}

// keyCondition is the condition for the sort keys of a partition that begin with prefix and lie in
// b. It names the continuation by condition, never by ExclusiveStartKey, which would need a key
// whose record may have moved to another partition since.
func keyCondition(p *AccessPattern, partition, prefix string, b bounds) keyRange {
	pk, sk := p.keyAttributes()
	c := keyRange{partition: partition}
	equal := pk + " = :pk"
	from, to := prefix+b.from, ""
	if b.to != "" {
		to = justBefore(prefix + b.to)
	} else if prefix != "" {
		to = prefix + highest
	}
	switch {
	case b == bounds{} && prefix == "":
		c.text = equal
	case b == bounds{}:
		c.text, c.from = equal+" AND begins_with("+sk+", :from)", from
	case from == "":
		c.text, c.to = equal+" AND "+sk+" <= :to", to
	case to == "":
		c.text, c.from = equal+" AND "+sk+" >= :from", from
	default:
		c.text, c.from, c.to = equal+" AND "+sk+" BETWEEN :from AND :to", from, to
	}
	return c
}

// describeRange tells people which keys a Query reads.
func describeRange(p *AccessPattern, partition, prefix string, b bounds) string {
	_, sk := p.keyAttributes()
	from, exclusive := strings.CutSuffix(b.from, justAfter(""))
	relation := " <= "
	if exclusive {
		relation = " < "
	}
	switch {
	case b == bounds{} && prefix == "":
		return partition
	case b == bounds{}:
		return partition + " " + prefix + "*"
	case b.to == "":
		return partition + " " + prefix + from + relation + sk
	case b.from == "":
		return partition + " " + sk + " < " + prefix + b.to
	default:
		return partition + " " + prefix + from + relation + sk + " < " + prefix + b.to
	}
}
