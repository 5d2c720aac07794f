package bound

import "math"

// requestLoad is the maximum load of reading groups of records. Lookups in the same group share
// requests of up to 100 keys, so n keys need at most n/100 + 99/100 requests.
type requestLoad struct {
	// perRecord and perGroup count hundredths of requests, for each record and each group.
	// readUnits counts read capacity units for each record.
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
	// patterns contains the load of each access pattern and write pattern. If there are several ways
	// to read a field, patterns counts all of them, but total counts only the maximum.
	patterns []requestLoad
	// keyChain is the maximum number of sequential round trips that can start when only the record's
	// key is known. recordChain is the maximum number that start after the record has been read.
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

// addChildren adds the cost of reading a nested selection for the given numbers of records and
// groups (requestLoad). more is the cost for one record. The caller must update keyChain and
// recordChain.
func (c *cost) addChildren(more cost, records, groups float64) {
	c.total.add(more.total, records, groups)
	for i, a := range more.patterns {
		c.patterns[i].add(a, records, groups)
	}
}

// raiseToMaximum combines the costs of two possible types of a record. Each number becomes the
// larger one of both costs. perGroup is added instead, because lookups of different types do not
// share requests.
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
