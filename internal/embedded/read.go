package embedded

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/ordergraph/ordergraph/internal/embedded/attr"
	"github.com/ordergraph/ordergraph/internal/embedded/expr"
)

// get is a read of one item by its key.
type get struct {
	projection expr.Projection
	table      *table
	key        []byte

	size int    // size is the item's size, 0 if there is no item
	json []byte // json is the projected item, nil if there is no item
}

// newGet validates a projection.
func newGet(projection *string, p *expr.Placeholders) (*get, error) {
	g := &get{}
	err := p.Check(projection != nil)
	if err == nil && projection != nil {
		g.projection, err = expr.ParseProjection(*projection, p)
	}
	if err == nil {
		err = p.Unused()
	}
	return g, asInvalid(err)
}

// on validates the projection and the key. It returns errKeySchema, or an error about the key's
// values.
func (g *get) on(t *table, key attr.Item) (err error) {
	g.table = t
	if err := t.checkPaths(g.projection); err != nil {
		return err
	}
	g.key, err = t.lookup(key)
	return err
}

// read reads the item. Its JSON is valid as long as the transaction.
func (g *get) read(tx *bbolt.Tx) error {
	b := tx.Bucket(g.table.bucket)
	if b == nil {
		return notFound()
	}
	stored := b.Bucket(bucketItems).Get(g.key)
	if stored == nil {
		return nil
	}
	g.size, g.json = splitStored(stored)
	if len(g.projection) == 0 {
		return nil
	}
	item, err := attr.ParseItem(g.json)
	g.json = g.projection.Apply(item).AppendJSON(nil)
	return err
}

func (s *Store) getItem(_ context.Context, in *struct {
	TableName                *string
	Key                      attr.Item
	ConsistentRead           bool
	ProjectionExpression     *string
	ExpressionAttributeNames map[string]string
	ReturnConsumedCapacity   string
	AttributesToGet          any
}) ([]byte, error) {
	v := &violations{}
	v.table(in.TableName)
	if in.Key == nil {
		v.null("key")
	}
	v.capacity(in.ReturnConsumedCapacity)
	if err := v.error(); err != nil {
		return nil, err
	}
	if err := legacy([]parameter{{"AttributesToGet", in.AttributesToGet != nil}}, []parameter{{"ProjectionExpression", in.ProjectionExpression != nil}}); err != nil {
		return nil, err
	}
	g, err := newGet(in.ProjectionExpression, &expr.Placeholders{Names: in.ExpressionAttributeNames})
	if err != nil {
		return nil, err
	}
	t, err := s.table(*in.TableName)
	if err != nil {
		return nil, err
	}
	if err := g.on(t, in.Key); err != nil {
		return nil, asInvalid(err)
	}
	o := newObject()
	err = s.db.View(func(tx *bbolt.Tx) error {
		if err := g.read(tx); err != nil {
			return err
		}
		if g.json != nil {
			o.raw("Item", g.json)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	u := newUsage(in.ReturnConsumedCapacity)
	u.add(t, readUnits(g.size, in.ConsistentRead), nil)
	u.single(o)
	return o.done(), nil
}

// maxPage is the size of the items, in bytes, after which a Query or Scan ends. The item that exceeds
// the size belongs to the page.
const maxPage = 1 << 20

// listInput has the parameters of Query and Scan.
type listInput struct {
	TableName                 *string
	IndexName                 *string
	KeyConditionExpression    *string
	FilterExpression          *string
	ProjectionExpression      *string
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues attr.Item
	Select                    string
	Limit                     *int
	ScanIndexForward          *bool
	ExclusiveStartKey         attr.Item
	ConsistentRead            bool
	ReturnConsumedCapacity    string
	Segment, TotalSegments    *int

	// Parameters of the API's first version.
	AttributesToGet, KeyConditions, QueryFilter, ScanFilter any
	ConditionalOperator                                     string
}

// list is a Query or a Scan.
type list struct {
	*listInput
	table      *table
	index      *index // index is nil for a read of the table
	filter     *expr.Predicate
	projection expr.Projection
	// start and end are the bounds of the keys: start is included, end is not. An end of nil is
	// the end of the bucket.
	start, end []byte
	backward   bool
	// fetches reports whether a read of a local secondary index needs the complete items, because
	// the index does not project all requested attributes.
	fetches bool

	items            [][]byte
	count, evaluated int
	size             int // size is the size of the items, or of the projected attributes of an index
	fetchedSize      int // fetchedSize is the size of the complete items that were fetched
	fetchedUnits     float64
	last             attr.Item // last is the key of the last item read, nil if all items were read
}

// checkList validates what Query and Scan have in common.
func (in *listInput) checkList(v *violations) error {
	if !v.table(in.TableName) {
		return v.error()
	}
	v.capacity(in.ReturnConsumedCapacity)
	v.enum(in.Select, "select", "SPECIFIC_ATTRIBUTES", "COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES")
	if in.IndexName != nil {
		v.name(*in.IndexName, "indexName", 3)
	}
	if err := v.error(); err != nil {
		return err
	}
	if err := legacy([]parameter{
		{"AttributesToGet", in.AttributesToGet != nil}, {"KeyConditions", in.KeyConditions != nil}, {"QueryFilter", in.QueryFilter != nil},
		{"ScanFilter", in.ScanFilter != nil}, {"ConditionalOperator", in.ConditionalOperator != ""},
	}, []parameter{
		{"ProjectionExpression", in.ProjectionExpression != nil}, {"FilterExpression", in.FilterExpression != nil}, {"KeyConditionExpression", in.KeyConditionExpression != nil},
	}); err != nil {
		return err
	}
	switch {
	case in.ProjectionExpression != nil && in.Select != "" && in.Select != "SPECIFIC_ATTRIBUTES":
		what := map[string]string{"COUNT": "only the Count", "ALL_ATTRIBUTES": "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES": "ALL_PROJECTED_ATTRIBUTES"}[in.Select]
		return invalid("Cannot specify the ProjectionExpression when choosing to get %s", what)
	case in.Select == "ALL_PROJECTED_ATTRIBUTES" && in.IndexName == nil:
		return invalid("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")
	}
	return nil
}

// errNoProjection is the error for attributes that are not named. Query counts it as a validation
// error, Scan does not.
var errNoProjection = invalid("Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES")

// selectsNothing reports whether attributes have to be named, but are not.
func (in *listInput) selectsNothing() bool {
	return in.ProjectionExpression == nil && in.Select == "SPECIFIC_ATTRIBUTES"
}

// parse validates the expressions of a Query or a Scan.
func (in *listInput) parse(isScan bool) (*list, *expr.KeyExpression, error) {
	l := &list{listInput: in, backward: in.ScanIndexForward != nil && !*in.ScanIndexForward}
	p := &expr.Placeholders{Names: in.ExpressionAttributeNames, Values: in.ExpressionAttributeValues, Older: isScan}
	err := p.Check(in.FilterExpression != nil || in.ProjectionExpression != nil || in.KeyConditionExpression != nil)
	if err == nil && in.FilterExpression != nil {
		l.filter, err = expr.ParseCondition(expr.Filter, *in.FilterExpression, p)
	}
	if err == nil && in.ProjectionExpression != nil {
		l.projection, err = expr.ParseProjection(*in.ProjectionExpression, p)
	}
	var key *expr.KeyExpression
	if err == nil && in.KeyConditionExpression != nil {
		key, err = expr.ParseKeyCondition(*in.KeyConditionExpression, p)
	}
	if err == nil {
		err = p.Unused()
	}
	return l, key, asInvalid(err)
}

// on finds the table and the index.
func (l *list) on(s *Store) (err error) {
	in := l.listInput
	if l.table, err = s.table(*in.TableName); err != nil {
		return err
	}
	if err := l.table.checkPaths(slices.Concat(l.filter.Paths(), l.projection)); err != nil {
		return asInvalid(err)
	}
	if in.IndexName == nil {
		return nil
	}
	if l.index = l.table.index(*in.IndexName); l.index == nil {
		return invalid("The table does not have the specified index: %s", *in.IndexName)
	}
	if in.ConsistentRead && !l.index.local {
		return invalid("Consistent reads are not supported on global secondary indexes")
	}
	if l.index.projected == nil {
		return nil
	}
	if l.index.local {
		l.fetches = in.Select == "ALL_ATTRIBUTES" || slices.ContainsFunc(l.projection, func(path expr.Path) bool { return !l.index.projected[path[0].Name] })
		return nil
	}
	if in.Select == "ALL_ATTRIBUTES" {
		return invalid("One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for global secondary index %s because its projection type is not ALL", l.index.name)
	}
	for _, path := range l.projection {
		if !l.index.projected[path[0].Name] {
			return invalid("One or more parameter values were invalid: Global secondary index %s does not project [%s]", l.index.name, path[0].Name)
		}
	}
	return nil
}

// key returns the key that the list is ordered by.
func (l *list) key() []expr.KeyAttribute {
	if l.index != nil {
		return l.index.key
	}
	return l.table.key
}

func (s *Store) query(_ context.Context, in *listInput) ([]byte, error) {
	v := &violations{}
	if in.Limit != nil && *in.Limit < 1 {
		v.found = append(v.found, "Value at 'Limit' failed to satisfy constraint: Member must have value greater than or equal to 1")
	}
	if err := in.checkList(v); err != nil {
		return nil, err
	}
	if in.selectsNothing() {
		return nil, detected(errNoProjection)
	}
	if in.KeyConditionExpression == nil {
		return nil, invalid("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.")
	}
	l, key, err := in.parse(false)
	if err != nil {
		return nil, err
	}
	if err := l.on(s); err != nil {
		return nil, err
	}
	r, err := key.Range(l.key())
	if err != nil {
		return nil, asInvalid(err)
	}
	if err := l.checkFilter(); err != nil {
		return nil, err
	}
	l.setRange(r)
	if err := l.startAfter("The provided starting key is invalid", "The provided starting key is outside query boundaries based on provided conditions"); err != nil {
		return nil, err
	}
	return l.run(s)
}

// checkFilter returns an error if the filter of a Query uses the attributes of the key, or
// attributes that the index does not contain.
func (l *list) checkFilter() error {
	var missing []string
	for _, path := range l.filter.Paths() {
		name := path[0].Name
		for _, k := range l.key() {
			if k.Name == name {
				return invalid("Filter Expression can only contain non-primary key attributes: Primary key attribute: %s", name)
			}
		}
		if l.index != nil && l.index.projected != nil && !l.index.projected[name] {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		return invalid("One or more parameter values were invalid: Secondary index %s does not project one or more filter attributes: [%s]", l.index.name, strings.Join(missing, ", "))
	}
	return nil
}

// setRange sets the bounds of a Query.
func (l *list) setRange(r *expr.KeyRange) {
	common := encodePartition(r.Partition)
	for _, v := range r.Equal {
		common = v.AppendKey(common)
	}
	l.start, l.end = common, successor(common)
	with := func(v *attr.Value) []byte { return v.AppendKey(bytes.Clone(common)) }
	if r.Prefix != nil {
		l.start = attr.AppendKeyPrefix(bytes.Clone(common), r.Prefix.Text)
		l.end = successor(l.start)
	}
	if r.Low != nil {
		if l.start = with(r.Low); r.LowOpen {
			l.start = successor(l.start)
		}
	}
	if r.High != nil {
		if l.end = with(r.High); !r.HighOpen {
			l.end = successor(l.end)
		}
	}
}

// successor returns the first bytes after all bytes with a prefix, or nil if there are none.
func successor(prefix []byte) []byte {
	next := bytes.Clone(prefix)
	for i := len(next) - 1; i >= 0; i-- {
		if next[i]++; next[i] != 0 {
			return next[:i+1]
		}
	}
	return nil
}

// startAfter moves the start behind ExclusiveStartKey. mismatch is the message for a key that is not
// the table's or index's, and outside is the message for a key out of the bounds.
func (l *list) startAfter(mismatch, outside string) error {
	key := l.ExclusiveStartKey
	if key == nil {
		return nil
	}
	if _, err := key.Normalize(); err != nil {
		return asInvalid(err)
	}
	names := map[string]attr.Kind{}
	for _, k := range l.table.key {
		names[k.Name] = k.Kind
	}
	if l.index != nil {
		for _, k := range l.index.key {
			names[k.Name] = k.Kind
		}
	}
	for name, kind := range names {
		if v, ok := key[name]; !ok || v.Kind != kind || len(key) != len(names) {
			return invalid("%s", mismatch)
		}
	}
	if err := l.table.checkKeySizes(key); err != nil {
		return asInvalid(err)
	}
	if fault := l.table.checkIndexKeys(key, ""); fault != nil {
		return asInvalid(fault)
	}
	position := encodeKey(l.table.key, key)
	if l.index != nil {
		position = l.index.entry(key, position)
	}
	if bytes.Compare(position, l.start) < 0 || l.end != nil && bytes.Compare(position, l.end) >= 0 {
		return invalid("%s", outside)
	}
	if l.backward {
		l.end = position
	} else {
		l.start = slices.Concat(position, []byte{0})
	}
	return nil
}

func (s *Store) scan(_ context.Context, in *listInput) ([]byte, error) {
	v := &violations{}
	if in.Limit != nil {
		v.atLeast(*in.Limit, 1, "limit")
	}
	if in.TotalSegments != nil {
		v.atLeast(*in.TotalSegments, 1, "totalSegments")
		v.atMost(*in.TotalSegments, 1_000_000, "totalSegments")
	}
	if in.Segment != nil {
		v.atLeast(*in.Segment, 0, "segment")
		v.atMost(*in.Segment, 999_999, "segment")
	}
	if err := in.checkList(v); err != nil {
		return nil, err
	}
	switch {
	case in.selectsNothing():
		return nil, errNoProjection
	case in.Segment != nil && in.TotalSegments == nil:
		return nil, invalid("The TotalSegments parameter is required but was not present in the request when Segment parameter is present")
	case in.Segment == nil && in.TotalSegments != nil:
		return nil, invalid("The Segment parameter is required but was not present in the request when parameter TotalSegments is present")
	case in.Segment != nil && *in.Segment >= *in.TotalSegments:
		return nil, invalid("The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: %d is not less than TotalSegments: %d", *in.Segment, *in.TotalSegments)
	}
	in.KeyConditionExpression = nil
	l, _, err := in.parse(true)
	if err != nil {
		return nil, err
	}
	if err := l.on(s); err != nil {
		return nil, err
	}
	if in.Segment != nil {
		// A segment has the keys of a range of hashes.
		first, next := *in.Segment*256 / *in.TotalSegments, (*in.Segment+1)*256 / *in.TotalSegments
		l.start = []byte{byte(first)}
		if next < 256 {
			l.end = []byte{byte(next)}
		}
		if first == next {
			l.start, l.end = []byte{1}, []byte{0} // an empty range
		}
	}
	const prefix = "The provided starting key is invalid: "
	if err := l.startAfter(prefix+errKeySchema.Error(), prefix+"Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct Segment."); err != nil {
		return nil, err
	}
	return l.run(s)
}

// run reads one page.
func (l *list) run(s *Store) ([]byte, error) {
	o := newObject()
	err := s.db.View(func(tx *bbolt.Tx) error {
		if err := l.read(tx); err != nil {
			return err
		}
		if l.Select != "COUNT" {
			o.list("Items", len(l.items), func(i int) { o.element(l.items[i]) })
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	o.int("Count", l.count)
	o.int("ScannedCount", l.evaluated)
	if l.last != nil {
		o.item("LastEvaluatedKey", l.last)
	}
	u := newUsage(l.ReturnConsumedCapacity)
	units := readUnits(l.size, l.ConsistentRead)
	if l.index != nil {
		u.add(l.table, l.fetchedUnits, map[string]float64{l.index.name: units})
	} else {
		u.add(l.table, units, nil)
	}
	u.single(o)
	return o.done(), nil
}

// read reads the items of the page.
func (l *list) read(tx *bbolt.Tx) error {
	b := tx.Bucket(l.table.bucket)
	if b == nil {
		return notFound()
	}
	items := b.Bucket(bucketItems)
	c := items.Cursor()
	if l.index != nil {
		entries := b.Bucket(l.index.bucket)
		if entries == nil {
			return notFound()
		}
		c = entries.Cursor()
	}
	for k, v := l.first(c); k != nil && l.within(k); k, v = l.next(c) {
		stored := v
		if l.index != nil {
			stored = items.Get(v)
		}
		if err := l.add(stored); err != nil {
			return err
		}
		if l.Limit != nil && l.evaluated == *l.Limit || l.size+l.fetchedSize > maxPage {
			// DynamoDB does not look for a further item.
			return l.stop(stored)
		}
	}
	return nil
}

// first moves the cursor to the first item of the range.
func (l *list) first(c *bbolt.Cursor) (k, v []byte) {
	if !l.backward {
		return c.Seek(l.start)
	}
	if l.end == nil {
		return c.Last()
	}
	if k, _ := c.Seek(l.end); k == nil {
		return c.Last()
	}
	return c.Prev()
}

// next moves the cursor to the next item.
func (l *list) next(c *bbolt.Cursor) (k, v []byte) {
	if l.backward {
		return c.Prev()
	}
	return c.Next()
}

// within reports whether a key is in the range.
func (l *list) within(k []byte) bool {
	if l.backward {
		return bytes.Compare(k, l.start) >= 0
	}
	return l.end == nil || bytes.Compare(k, l.end) < 0
}

// add adds an item to the page.
func (l *list) add(stored []byte) error {
	size, encoded := splitStored(stored)
	var item attr.Item
	narrow := l.index != nil && l.index.projected != nil
	if l.filter != nil || len(l.projection) > 0 || narrow {
		var err error
		if item, err = attr.ParseItem(encoded); err != nil {
			return err
		}
	}
	if narrow {
		projected := l.index.content(item)
		if l.fetches {
			l.fetchedSize += size
			l.fetchedUnits += readUnits(size, l.ConsistentRead)
		} else {
			item = projected
		}
		size = projected.Size()
	}
	l.size += size
	l.evaluated++
	if l.filter != nil && !l.filter.Matches(item) {
		return nil
	}
	l.count++
	switch {
	case l.Select == "COUNT":
	case len(l.projection) > 0 || narrow && !l.fetches:
		l.items = append(l.items, l.projection.Apply(item).AppendJSON(nil))
	default:
		l.items = append(l.items, encoded)
	}
	return nil
}

// stop ends the page after an item.
func (l *list) stop(last []byte) error {
	_, encoded := splitStored(last)
	item, err := attr.ParseItem(encoded)
	l.last = l.table.keyItem(item, l.index)
	return err
}
