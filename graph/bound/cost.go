package bound

import "math"

// requestLoad is the maximum load on DynamoDB for reading records in groups. A group is a batch of
// lookups with up to 100 keys per request. A group of n keys takes at most n/100 + 99/100 requests:
// n/100, rounded up.
type requestLoad struct {
	// perRecord is the number of requests for each record, in hundredths of a request. perGroup is the
	// additional number for each group, also in hundredths. readUnits are the read capacity units for
	// each record.
	perRecord, perGroup, readUnits float64
}

func (d *requestLoad) add(more requestLoad, records, groups float64) {
	d.perRecord = cappedSum(d.perRecord, more.perRecord*records)
	d.perGroup = cappedSum(d.perGroup, more.perGroup*groups)
	d.readUnits = cappedSum(d.readUnits, more.readUnits*records)
}

// cappedSum returns a+b, but at most 1e15. The cap prevents overflows in later calculations.
func cappedSum(a, b float64) float64 { return math.Min(a+b, 1e15) }

// cost is the cost of a selection per record.
type cost struct {
	total requestLoad
	// patterns splits total by access pattern and write pattern.
	patterns []requestLoad
	// keyChain is the number of round trips in the longest chain of dependent requests that starts
	// with the record's key. recordChain is the same for chains that start after the record has been
	// read.
	keyChain, recordChain int
}

func newCost(b *calculator) cost {
	return cost{patterns: make([]requestLoad, len(b.patterns)+len(b.writes))}
}

// addRead adds requests of a pattern.
func (c *cost) addRead(pattern int, d requestLoad) {
	c.total.add(d, 1, 1)
	c.patterns[pattern].add(d, 1, 1)
}

// addChildren adds the requests and read units of a nested selection. more is the cost for one
// record, records is the number of records, and groups is the number of groups of lookups. The
// caller updates keyChain and recordChain, because only the caller knows which requests must wait
// for other requests.
func (c *cost) addChildren(more cost, records, groups float64) {
	c.total.add(more.total, records, groups)
	for i, a := range more.patterns {
		c.patterns[i].add(a, records, groups)
	}
}

// raiseToMaximum raises c to the maximum of c and other, the costs of two possible types of a record.
// It adds the costs per group, because lookups for records of different types do not share
// requests.
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
