package bound

import "math"

// demand is what is asked of DynamoDB for any number of records that come in any number of groups.
// Look-ups of a group share requests: n keys take one for each hundred of them, rounded up, which
// is at most n/100 + 99/100.
type demand struct {
	// each and group are hundredths of requests, for each record and for each group of them; units
	// are read units for each.
	each, group, units float64
}

func (a *demand) add(more demand, records, groups float64) {
	a.each = sum(a.each, more.each*records)
	a.group = sum(a.group, more.group*groups)
	a.units = sum(a.units, more.units*records)
}

// sum keeps numbers where they can be calculated with.
func sum(a, b float64) float64 { return math.Min(a+b, 1e15) }

// cost is what a selection costs for each of the records that it applies to.
type cost struct {
	total demand
	// patterns are the parts of the access patterns and the write patterns.
	patterns []demand
	// key and record are the longest chains of requests that begin when the records' keys are
	// known, and when the records are there.
	key, record int
}

func newCost(b *bounding) cost { return cost{patterns: make([]demand, len(b.patterns)+len(b.writes))} }

// read adds requests of a pattern.
func (c *cost) read(pattern int, a demand) {
	c.total.add(a, 1, 1)
	c.patterns[pattern].add(a, 1, 1)
}

// below adds what is selected of so many records, in so many groups, but not its chains.
func (c *cost) below(more cost, records, groups float64) {
	c.total.add(more.total, records, groups)
	for i, a := range more.patterns {
		c.patterns[i].add(a, records, groups)
	}
}

// either makes c the most of c and another cost, where records are of one type or of another: each
// type's are a group.
func (c *cost) either(other cost) {
	most := func(a *demand, b demand) {
		a.each, a.units, a.group = math.Max(a.each, b.each), math.Max(a.units, b.units), sum(a.group, b.group)
	}
	most(&c.total, other.total)
	for i, a := range other.patterns {
		most(&c.patterns[i], a)
	}
	c.key, c.record = max(c.key, other.key), max(c.record, other.record)
}

// bound is what a cost is for the one root.
func (b *bounding) bound(c cost) Bound {
	requests := func(a demand) int { return int(math.Min((a.each+a.group)/100, Unbounded)) }
	units := func(a demand) float64 { return math.Min(math.Ceil(2*a.units)/2, Unbounded) }
	bound := Bound{Requests: requests(c.total), ReadUnits: units(c.total), RoundTrips: max(c.key, c.record)}
	all := 0
	for i, a := range c.patterns {
		if a == (demand{}) {
			continue
		}
		id := ""
		if i < len(b.patterns) {
			id = b.patterns[i].ID
		} else {
			id = b.writes[i-len(b.patterns)].ID
		}
		bound.Patterns = append(bound.Patterns, Pattern{AccessPattern: id, Requests: requests(a), ReadUnits: units(a)})
		all += requests(a)
	}
	bound.Requests = min(bound.Requests, all)
	bound.RoundTrips = min(bound.RoundTrips, bound.Requests)
	return bound
}
