package throttle

import (
	"math/rand/v2"
	"slices"
	"time"
)

// A partition splits if it is busy for a complete period. DynamoDB documents no times: it splits a
// partition after "sustained" traffic.
//
// https://aws.amazon.com/blogs/database/part-2-scaling-dynamodb-how-partitions-hot-keys-and-split-for-heat-impact-performance/
const (
	period = 5 * time.Minute
	// hot is the part of its capacity that a busy partition uses.
	hot = 0.8
	// samples is about how many sort keys a meter collects if a period's complete capacity is used.
	samples = 200
	// minBenefit is the part of the traffic that each new partition must get.
	minBenefit = 0.1
)

// collection is an item collection. At first, it is in one partition.
type collection struct {
	// partitions are sorted by from. The first of them begins with "".
	partitions []partition
}

func newCollection() *collection { return &collection{partitions: make([]partition, 1)} }

// partition contains the items from a sort key to the next partition.
type partition struct {
	from          string
	reads, writes meter
}

// meter measures the used capacity of a partition, either of reads or of writes.
type meter struct {
	// full is the time when the partition has its complete capacity again.
	full time.Time
	// begin is the beginning of the current period.
	begin time.Time
	// used is the time that the partition needs for the requests of the current period.
	used time.Duration
	// keys contains sort keys of the current period, in the order of their requests.
	keys []string
}

// find returns the index of the partition that contains a sort key.
func (c *collection) find(key string) int {
	p := len(c.partitions) - 1
	for c.partitions[p].from > key {
		p--
	}
	return p
}

// split splits a partition. The new partition begins with the sort key at. As in DynamoDB,
// partitions never merge.
func (c *collection) split(p int, at string) {
	// End the periods, because their sort keys may now belong to the new partition.
	c.partitions[p].reads.begin, c.partitions[p].writes.begin = time.Time{}, time.Time{}
	c.partitions = slices.Insert(c.partitions, p+1, partition{from: at})
}

// addHeat adds a request to the current period. If the period has ended and the partition should
// split, addHeat returns the sort key where the new partition begins, and otherwise "".
func (m *meter) addHeat(now time.Time, cost time.Duration, key string, random *rand.Rand) (at string) {
	if elapsed := now.Sub(m.begin); elapsed >= period {
		if float64(m.used) >= hot*float64(elapsed) {
			at = splitPoint(m.keys)
		}
		m.begin, m.used, m.keys = now, 0, nil
	}
	if random.Float64()*float64(period) < samples*float64(cost) {
		m.keys = append(m.keys, key)
	}
	m.used += cost
	return at
}

// splitPoint returns the one of the older keys that divides the newer keys best. If no older key
// divides them, splitPoint returns "". This happens if all requests have one sort key, or if the sort
// keys always increase.
func splitPoint(keys []string) (at string) {
	older, newer := keys[:len(keys)/2], keys[len(keys)/2:]
	best := int(minBenefit * float64(len(newer)))
	for _, key := range older {
		below := 0
		for _, k := range newer {
			if k < key {
				below++
			}
		}
		if benefit := min(below, len(newer)-below); benefit > best {
			at, best = key, benefit
		}
	}
	return at
}
