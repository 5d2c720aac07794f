package bound

import "math"

// requestLoad is the maximum load on DynamoDB for looking up records in groups. The lookups of a
// group share requests of up to 100 keys each. A group of n keys therefore needs n/100 requests,
// rounded up. That is at most n/100 + 99/100 requests.
type requestLoad struct {
	// perRecord is the number of requests for each record, in hundredths of a request. perGroup is the
	// additional number of requests for each group, also in hundredths. readUnits is the number of
	// read capacity units for each record.
	perRecord, perGroup, readUnits float64
}

func (d *requestLoad) add(more requestLoad, records, groups float64) {
	d.perRecord = cappedSum(d.perRecord, more.perRecord*records)
	d.perGroup = cappedSum(d.perGroup, more.perGroup*groups)
	d.readUnits = cappedSum(d.readUnits, more.readUnits*records)
}

// cappedSum returns a+b, but at most 1e15. The limit prevents overflows in later calculations.
func cappedSum(a, b float64) float64 { return math.Min(a+b, 1e15) }

// cost is the cost of reading a selection set for one record.
type cost struct {
	total requestLoad
	// patterns contains the load of each access pattern, followed by the load of each write
	// pattern. The sum of these loads can exceed total. If a field has alternatives, total contains
	// only the maximum, but patterns contains the load of every alternative.
	patterns []requestLoad
	// keyChain and recordChain are the numbers of round trips in the longest sequence of requests that
	// wait for each other. For keyChain, the sequence starts when the key of the record is known. For
	// recordChain, it starts after the record has been read.
	keyChain, recordChain int
}

func newCost(b *calculator) cost {
	return cost{patterns: make([]requestLoad, len(b.patterns)+len(b.writes))}
}

// addRead adds requests that belong to one access pattern or write pattern.
func (c *cost) addRead(pattern int, d requestLoad) {
	c.total.add(d, 1, 1)
	c.patterns[pattern].add(d, 1, 1)
}

// addChildren adds the requests and read units of a nested selection. more is the cost for one
// record, records is the number of records, and groups is the number of groups of lookups.
//
// The caller must update keyChain and recordChain, because only the caller knows which requests
// wait for others.
func (c *cost) addChildren(more cost, records, groups float64) {
	c.total.add(more.total, records, groups)
	for i, a := range more.patterns {
		c.patterns[i].add(a, records, groups)
	}
}

// raiseToMaximum combines the costs of two types, if a record can have either type. Each number of
// c becomes the maximum of the numbers in c and other. The number of requests per group becomes the
// sum instead, because lookups of different types do not share requests.
func (c *cost) raiseToMaximum(other cost) {
	setMax := func(a *requestLoad, b requestLoad) {
		a.perRecord, a.readUnits, a.perGroup = math.Max(a.perRecord, b.perRecord), math.Max(a.readUnits, b.readUnits), cappedSum(a.perGroup, b.perGroup)
	}
	setMax(&c.total, other.total)
	for i, a := range other.patterns {
		setMax(&c.patterns[i], a)
	}
	c.keyChain, c.recordChain = max(c.keyChain, other.keyChain), max(c.recordChain, other.recordChain)
}

// toBound converts the cost of the root selection to a Bound.
func (b *calculator) toBound(c cost) Bound {
	requests := func(a requestLoad) int { return int(math.Min((a.perRecord+a.perGroup)/100, Unbounded)) }
	units := func(a requestLoad) float64 { return math.Min(math.Ceil(2*a.readUnits)/2, Unbounded) }
	bound := Bound{Requests: requests(c.total), ReadUnits: units(c.total), RoundTrips: max(c.keyChain, c.recordChain)}
	all := 0
	for i, a := range c.patterns {
		if a == (requestLoad{}) {
			continue
		}
		id := ""
		if i < len(b.patterns) {
			id = b.patterns[i].ID
		} else {
			id = b.writes[i-len(b.patterns)].ID
		}
		bound.Patterns = append(bound.Patterns, PatternBound{AccessPattern: id, Requests: requests(a), ReadUnits: units(a)})
		all += requests(a)
	}
	bound.Requests = min(bound.Requests, all)
	bound.RoundTrips = min(bound.RoundTrips, bound.Requests)
	return bound
}
