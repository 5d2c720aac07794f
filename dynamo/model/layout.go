package model

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	_ "time/tzdata" // container images often lack the time zones

	"github.com/ordergraph/ordergraph/commerce"
)

// Layout is the number of shards of a table over time, in ascending order. The zero value is the
// layout of a table with one shard. Do not modify a Layout, because servers and commands share it.
//
// The time of a record determines its era, and a record's time never changes. So eras are only ever
// appended, and a new era moves no record.
type Layout []Era

// Era is a period with one number of shards. It ends where the next era begins.
type Era struct {
	// From is the beginning of the era. The first era has no beginning.
	From time.Time
	// Shards is the number of partition keys over which each sharded list is spread.
	Shards int
	// TimeZone is the IANA name of the time zone in which the days of sales begin. An empty name means
	// UTC.
	TimeZone string
}

// CurrentLayout is the layout that a server uses. It is safe for concurrent use.
type CurrentLayout struct{ layout atomic.Pointer[StoredLayout] }

// NewCurrentLayout returns a CurrentLayout that contains l, and in which all derivations are readable
// that new tables have.
func NewCurrentLayout(l Layout) *CurrentLayout {
	c, lacking := &CurrentLayout{}, DerivationStatuses{}
	for _, d := range Derivations() {
		if d.Entity.OnRequest {
			lacking[d.Name] = DerivationStatus{State: Absent}
		}
	}
	c.Set(StoredLayout{Eras: l, Derivations: lacking})
	return c
}

// Get returns the layout. If c is nil, it returns a layout with one shard.
func (c *CurrentLayout) Get() Layout { return c.stored().Eras }

// Derivations returns the states of the derivations.
func (c *CurrentLayout) Derivations() DerivationStatuses { return c.stored().Derivations }

func (c *CurrentLayout) stored() StoredLayout {
	if c == nil {
		return StoredLayout{}
	}
	return *c.layout.Load()
}

// Set replaces the layout.
func (c *CurrentLayout) Set(l StoredLayout) { c.layout.Store(&l) }

// StoredLayout is the layout in the table's layout record.
type StoredLayout struct {
	Eras        Layout
	Derivations DerivationStatuses
	Version     int
}

// layoutRecord contains a StoredLayout as its record stores it. The declaration of its attributes
// cannot refer to the entities that have derivations, because it belongs to one of the entities.
type layoutRecord struct {
	Eras        Layout
	Derivations []string
	Version     int
}

// LayoutOfOldTable returns the layout of a table that stores none.
func LayoutOfOldTable(l Layout) StoredLayout {
	return StoredLayout{Eras: l, Derivations: ofOldTable()}
}

// layoutAttributes declares the attributes "eras" and "derivations". Each element of "eras" is the
// beginning of an era, its number of shards and its time zone, separated by spaces. The first era has no
// beginning, and eras in UTC have no time zone.
func layoutAttributes(a *attributeVisitor, l *layoutRecord) {
	eras := make([]string, 0, len(l.Eras))
	for _, e := range l.Eras {
		text := strconv.Itoa(e.Shards)
		if !e.From.IsZero() {
			text = Timestamp(e.From) + " " + text
		}
		eras = append(eras, strings.TrimSuffix(text+" "+e.TimeZone, " "))
	}
	a.texts("eras", &eras, MaxEras, len(timestampLayout)+len(" ")+len(strconv.Itoa(MaxShards))+len(" ")+len(longestTimeZone))
	a.texts("derivations", &l.Derivations, maxDerivations, maxDerivationText)
	a.version(&l.Version)
	if a.mode == modeMaximizing {
		l.Eras = OneEra(MaxShards)
		for i := 1; i < MaxEras; i++ {
			l.Eras = append(l.Eras, Era{time.Date(2026, 1, i, 0, 0, 0, 0, time.UTC), MaxShards, longestTimeZone})
		}
	}
	if a.mode != modeReading {
		return
	}
	if !a.Has("eras") {
		a.Fail("eras", "is missing")
	}
	l.Eras = make(Layout, len(eras))
	for i, text := range eras {
		var err error
		words := strings.Split(text, " ")
		if i > 0 {
			l.Eras[i].From, err = time.Parse(timestampLayout, words[0])
			words = words[1:]
		}
		if len(words) > 1 {
			l.Eras[i].TimeZone = words[1]
		}
		if err == nil && len(words) > 0 {
			l.Eras[i].Shards, err = strconv.Atoi(words[0])
		}
		if err != nil || len(words) == 0 || len(words) > 2 {
			a.Fail("eras", fmt.Sprintf("contains %q instead of a time, a number of shards and, unless it is UTC, a time zone", text))
			return
		}
	}
	if err := l.Eras.Check(); err != nil {
		a.Fail("eras", fmt.Sprintf("is no valid layout: %v", err))
	}
}

// LayoutRecord returns the layout record.
func LayoutRecord(b *KeyBuilder, l StoredLayout) Record {
	return b.record(&EntityLayout, encode(layoutAttributes, layoutRecord{l.Eras, l.Derivations.texts(), l.Version}))
}

// DecodeLayout decodes the layout record.
//
// Errors: ErrCorrupt.
func DecodeLayout(r Reader) (*StoredLayout, error) {
	a, l := attributeVisitor{Reader: r}, layoutRecord{}
	layoutAttributes(&a, &l)
	derivations, err := parseDerivations(l.Derivations)
	if err != nil {
		a.Fail("derivations", err.Error())
	}
	return &StoredLayout{l.Eras, derivations, l.Version}, a.Err()
}

// MaxShards is the maximum number of shards of a table, and MaxEras is the maximum number of eras.
const (
	MaxShards = 128
	MaxEras   = 100
)

// MaxScanSegments is the maximum number of segments in which DynamoDB scans a table:
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Scan.html
const MaxScanSegments = 1_000_000

// maxDerivations is the maximum number of derivations whose status a table stores. maxDerivationText is
// the maximum length of one of them.
const (
	maxDerivations    = 200
	maxDerivationText = 160
)

// OneEra returns a layout in which the number of shards has never changed. 0 shards mean 1 shard.
func OneEra(shards int) Layout { return Layout{{Shards: max(1, shards)}} }

// Check returns an error if l is no valid layout.
func (l Layout) Check() error {
	if len(l) > MaxEras {
		return fmt.Errorf("it has %d eras, but may have at most %d", len(l), MaxEras)
	}
	for i, e := range l {
		if e.Shards < 1 || e.Shards > MaxShards {
			return fmt.Errorf("era %d has %d shards, but may have from 1 to %d", i+1, e.Shards, MaxShards)
		}
		if _, err := locationOf(e.TimeZone); err != nil {
			return fmt.Errorf("era %d: %w", i+1, err)
		}
		if i == 0 && !e.From.IsZero() || i > 0 && !e.From.After(l[i-1].From) {
			return fmt.Errorf("era %d begins at %s, and not after the era before it", i+1, Timestamp(e.From))
		}
	}
	return nil
}

// String describes the layout, such as "1 shard, 16 shards from 2026-11-28T12:00:00Z (Europe/Berlin)".
func (l Layout) String() string {
	var parts []string
	for _, era := range l {
		text := fmt.Sprintf("%d shards", era.Shards)
		if era.Shards == 1 {
			text = "1 shard"
		}
		if !era.From.IsZero() {
			text += " from " + era.From.Format(time.RFC3339)
		}
		if era.TimeZone != "" {
			text += " (" + era.TimeZone + ")"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// At returns the era of records that are created at a time.
func (l Layout) At(at time.Time) Era {
	for _, era := range slices.Backward(l) {
		if !era.From.After(at) {
			return era
		}
	}
	return Era{Shards: 1}
}

// DayOf returns the day of a time, in the time zone of the era that contains the time.
func (l Layout) DayOf(at time.Time) commerce.Date {
	zone, err := locationOf(l.At(at).TimeZone)
	if err != nil {
		zone = time.UTC // Check has rejected such a layout
	}
	return commerce.Date(at.In(zone).Format(time.DateOnly))
}

// longestTimeZone is the time zone with the longest name.
const longestTimeZone = "America/Argentina/ComodRivadavia"

// locations contains the loaded time zones by name, because time.LoadLocation parses a file each time.
var locations sync.Map

// CheckTimeZone returns an error if name is not the IANA name of a time zone.
func CheckTimeZone(name string) error {
	_, err := locationOf(name)
	return err
}

func locationOf(name string) (*time.Location, error) {
	if l, ok := locations.Load(name); ok {
		return l.(*time.Location), nil
	}
	l, err := time.LoadLocation(name)
	if err != nil || len(name) > len(longestTimeZone) || name == "Local" {
		return nil, fmt.Errorf("%q is not the name of a time zone, such as Europe/Berlin", name)
	}
	locations.Store(name, l)
	return l, nil
}

// ShardSuffix returns the end of a shard's index partition key, such as #3. If the table has only
// one shard, the suffix is empty, because the keys written by other software have no suffix either.
func ShardSuffix(shard, shards int) string {
	if shards <= 1 {
		return ""
	}
	return "#" + strconv.Itoa(shard)
}

// shardSuffixOf returns the end of a partition key with the given shard, or "" if shard is empty.
func shardSuffixOf(shard string) string {
	if shard == "" {
		return ""
	}
	return "#" + shard
}

// ShardOf returns the shard number of an ID. Stored keys contain the shard number, so its
// calculation must never change.
func ShardOf(id string, shards int) int {
	if shards <= 1 {
		return 0
	}
	return int(hashOf(id) % uint32(shards))
}

func hashOf(id string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return h.Sum32()
}

// first returns the number of shards of the first era.
func (l Layout) first() int {
	if len(l) == 0 {
		return 1
	}
	return l[0].Shards
}

// shardsAt returns the number of shards for a record of the entity e with the given index sort key.
// Stored keys depend on the result, so it must not change when an era is appended.
func (l Layout) shardsAt(e *Entity, indexSK string) int {
	for _, era := range slices.Backward(l) {
		if era.From.IsZero() {
			break
		}
		if start, ok := e.startOf(era); ok && indexSK >= e.IndexSK.Prefix()+start {
			if !e.hasTime(strings.TrimPrefix(indexSK, e.IndexSK.Prefix())) {
				break
			}
			return e.shardsIn(era)
		}
	}
	return e.shardsIn(Era{Shards: l.first()})
}

// shardsIn returns the number of shards of the entity's records in an era.
func (e *Entity) shardsIn(era Era) int {
	switch {
	case e.LaterShards == 0:
		return era.Shards
	case era.From.IsZero():
		return 1
	}
	return min(era.Shards, e.LaterShards)
}

// startOf returns the first position of an era in a list of the entity e. It returns false if the
// list is not sorted by the time when a record was created. Such lists stay in the first era.
func (e *Entity) startOf(era Era) (string, bool) {
	switch e.IndexSK.Placeholders()[0] {
	case "orderId", "eventId":
		return commerce.MinULIDAt(era.From)
	case "createdAt":
		return Timestamp(era.From), true
	}
	return "", false
}

// hasTime reports whether a position in a list of the entity e begins with a time in the form that
// Ordergraph writes. Other software can use other IDs for orders.
func (e *Entity) hasTime(position string) bool {
	if name := e.IndexSK.Placeholders()[0]; name == "orderId" || name == "eventId" {
		_, ok := commerce.OrderID(position).Time()
		return ok && position == strings.ToUpper(position)
	}
	text, _, _ := strings.Cut(position, "#")
	at, err := time.Parse(time.RFC3339, text)
	return err == nil && Timestamp(at) == text
}

// Segment is a range of positions in a sharded list, with the partition keys that can contain these
// positions.
type Segment struct {
	Range      Range
	Partitions []string
}

// Segments returns the segments of a list, in ascending order. keys are the list's index partition
// keys without a shard number. A list that is not sharded has one segment.
//
// The partitions of the first era are in all segments: records without a time are sorted anywhere.
func (l Layout) Segments(p *AccessPattern, keys ...string) []Segment {
	if p.Operation != QueryPerShard {
		return []Segment{{Partitions: keys}}
	}
	e := p.Entities()[0]
	segments := []Segment{{Partitions: appendShards(nil, keys, e.shardsIn(Era{Shards: l.first()}))}}
	if len(l) < 2 {
		return segments
	}
	if p.Index == "" { // counter records, which are not sorted by time
		all := &segments[0].Partitions
		for _, era := range l[1:] {
			*all = appendShards(*all, keys, era.Shards)
		}
		slices.Sort(*all)
		*all = slices.Compact(*all)
		return segments
	}
	for _, era := range l[1:] {
		start, ok := e.startOf(era)
		if !ok {
			break
		}
		segments[len(segments)-1].Range.To = start
		all := appendShards(slices.Clone(segments[0].Partitions), keys, e.shardsIn(era))
		slices.Sort(all)
		segments = append(segments, Segment{Range{From: start}, slices.Compact(all)})
	}
	return segments
}

// Partitions returns the partition keys of a list in all eras.
func (l Layout) Partitions(p *AccessPattern, key string) (all []string) {
	for _, s := range l.Segments(p, key) {
		all = append(all, s.Partitions...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// appendShards appends the partition keys of all shards of a list.
func appendShards(to, keys []string, shards int) []string {
	for _, key := range keys {
		for shard := range shards {
			to = append(to, key+ShardSuffix(shard, shards))
		}
	}
	return to
}
