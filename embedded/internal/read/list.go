package read

import (
	"bytes"
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/embedded/internal/attr"
	"github.com/ordergraph/ordergraph/embedded/internal/expr"
	"github.com/ordergraph/ordergraph/embedded/internal/schema"
	"github.com/ordergraph/ordergraph/embedded/internal/throttle"
	"github.com/ordergraph/ordergraph/embedded/internal/wire"
)

// QueryOrScanInput contains the parameters of Query and Scan.
type QueryOrScanInput struct {
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

	// These legacy parameters are from the first version of DynamoDB's API. The engine rejects
	// them.
	AttributesToGet, KeyConditions, QueryFilter, ScanFilter any
	ConditionalOperator                                     string
}

// QueryOrScan is one Query or Scan: its parameters, the range of keys to read, and the page that it
// has read.
type QueryOrScan struct {
	*QueryOrScanInput
	table      *schema.Table
	index      *schema.Index // index is nil if the request names no index
	isScan     bool
	condition  *expr.KeyExpression // condition is nil for a Scan
	filter     *expr.Predicate
	projection expr.Projection
	// start and end limit the range of keys to read. The range includes start and excludes end. If
	// end is nil, the range has no upper bound.
	start, end []byte
	backward   bool
	// fetches reports whether the request also needs the complete item for each index entry. This
	// is necessary if a local secondary index does not project all requested attributes.
	fetches bool

	items            [][]byte
	count, evaluated int
	// size is the total size of the items read. If the request reads an index, only the projected
	// attributes count.
	size int
	// fetchedSize is the total size of the complete items, if fetches is true.
	fetchedSize  int
	fetchedUnits float64
	// load is the use of the partition that contains the first item read.
	load throttle.Load
	// last is the LastEvaluatedKey of the response: the key of the last item on the page. On the
	// final page, last is nil.
	last attr.Item
}

// checkCommon validates the parameters that Query and Scan have in common.
func (in *QueryOrScanInput) checkCommon(v *wire.Violations) error {
	if !v.CheckTableName(in.TableName) {
		return v.Err()
	}
	v.CheckReturnCapacity(in.ReturnConsumedCapacity)
	v.CheckEnum(in.Select, "select", "SPECIFIC_ATTRIBUTES", "COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES")
	if in.IndexName != nil {
		v.CheckName(*in.IndexName, "indexName", 3)
	}
	if err := v.Err(); err != nil {
		return err
	}
	if err := wire.CheckLegacy([]wire.Parameter{
		{Name: "AttributesToGet", Set: in.AttributesToGet != nil}, {Name: "KeyConditions", Set: in.KeyConditions != nil}, {Name: "QueryFilter", Set: in.QueryFilter != nil},
		{Name: "ScanFilter", Set: in.ScanFilter != nil}, {Name: "ConditionalOperator", Set: in.ConditionalOperator != ""},
	}, []wire.Parameter{
		{Name: "ProjectionExpression", Set: in.ProjectionExpression != nil}, {Name: "FilterExpression", Set: in.FilterExpression != nil}, {Name: "KeyConditionExpression", Set: in.KeyConditionExpression != nil},
	}); err != nil {
		return err
	}
	switch {
	case in.ProjectionExpression != nil && in.Select != "" && in.Select != "SPECIFIC_ATTRIBUTES":
		what := map[string]string{"COUNT": "only the Count", "ALL_ATTRIBUTES": "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES": "ALL_PROJECTED_ATTRIBUTES"}[in.Select]
		return wire.Invalid("Cannot specify the ProjectionExpression when choosing to get %s", what)
	case in.Select == "ALL_PROJECTED_ATTRIBUTES" && in.IndexName == nil:
		return wire.Invalid("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")
	}
	return nil
}

// errNoProjection is the error if Select is SPECIFIC_ATTRIBUTES and the request has no projection.
// For a Query, DynamoDB adds the prefix "1 validation error detected" to the message.
var errNoProjection = wire.Invalid("Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES")

// lacksProjection reports whether Select is SPECIFIC_ATTRIBUTES and the request has no projection.
func (in *QueryOrScanInput) lacksProjection() bool {
	return in.ProjectionExpression == nil && in.Select == "SPECIFIC_ATTRIBUTES"
}

// parse parses the expressions of a Query or Scan request.
func (in *QueryOrScanInput) parse(isScan bool) (*QueryOrScan, error) {
	l := &QueryOrScan{QueryOrScanInput: in, isScan: isScan, backward: in.ScanIndexForward != nil && !*in.ScanIndexForward}
	p := &expr.Placeholders{Names: in.ExpressionAttributeNames, Values: in.ExpressionAttributeValues, Older: isScan}
	err := p.Check(in.FilterExpression != nil || in.ProjectionExpression != nil || in.KeyConditionExpression != nil)
	if err == nil && in.FilterExpression != nil {
		l.filter, err = expr.ParseCondition(expr.FilterExpression, *in.FilterExpression, p)
	}
	if err == nil && in.ProjectionExpression != nil {
		l.projection, err = expr.ParseProjection(*in.ProjectionExpression, p)
	}
	if err == nil && in.KeyConditionExpression != nil {
		l.condition, err = expr.ParseKeyCondition(*in.KeyConditionExpression, p)
	}
	if err == nil {
		err = p.CheckAllUsed()
	}
	return l, wire.AsInvalid(err)
}

// NewQuery validates the parameters of a Query and parses its expressions.
func NewQuery(in *QueryOrScanInput) (*QueryOrScan, error) {
	v := &wire.Violations{}
	if in.Limit != nil && *in.Limit < 1 {
		v.AddMessage("Value at 'Limit' failed to satisfy constraint: Member must have value greater than or equal to 1")
	}
	if err := in.checkCommon(v); err != nil {
		return nil, err
	}
	if in.lacksProjection() {
		return nil, wire.WithDetectedPrefix(errNoProjection)
	}
	if in.KeyConditionExpression == nil {
		return nil, wire.Invalid("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.")
	}
	return in.parse(false)
}

// NewScan validates the parameters of a Scan and parses its expressions.
func NewScan(in *QueryOrScanInput) (*QueryOrScan, error) {
	v := &wire.Violations{}
	if in.Limit != nil {
		v.AtLeast(*in.Limit, 1, "limit")
	}
	if in.TotalSegments != nil {
		v.AtLeast(*in.TotalSegments, 1, "totalSegments")
		v.AtMost(*in.TotalSegments, 1_000_000, "totalSegments")
	}
	if in.Segment != nil {
		v.AtLeast(*in.Segment, 0, "segment")
		v.AtMost(*in.Segment, 999_999, "segment")
	}
	if err := in.checkCommon(v); err != nil {
		return nil, err
	}
	switch {
	case in.lacksProjection():
		return nil, errNoProjection
	case in.Segment != nil && in.TotalSegments == nil:
		return nil, wire.Invalid("The TotalSegments parameter is required but was not present in the request when Segment parameter is present")
	case in.Segment == nil && in.TotalSegments != nil:
		return nil, wire.Invalid("The Segment parameter is required but was not present in the request when parameter TotalSegments is present")
	case in.Segment != nil && *in.Segment >= *in.TotalSegments:
		return nil, wire.Invalid("The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: %d is not less than TotalSegments: %d", *in.Segment, *in.TotalSegments)
	}
	in.KeyConditionExpression = nil
	return in.parse(true)
}

// SetTable sets the table of the request, finds the index, and computes the range of keys to read.
// If the request does not fit the definition of the table, SetTable returns an error.
func (l *QueryOrScan) SetTable(t *schema.Table) error {
	l.table = t
	if err := l.findIndex(); err != nil {
		return err
	}
	if l.isScan {
		return l.scanRange()
	}
	return l.queryRange()
}

// findIndex finds the index and verifies that the request can read the requested attributes from
// it.
func (l *QueryOrScan) findIndex() error {
	in := l.QueryOrScanInput
	if err := l.table.CheckKeyPaths(slices.Concat(l.filter.Paths(), l.projection)); err != nil {
		return wire.AsInvalid(err)
	}
	if in.IndexName == nil {
		return nil
	}
	if l.index = l.table.Index(*in.IndexName); l.index == nil {
		return wire.Invalid("The table does not have the specified index: %s", *in.IndexName)
	}
	if in.ConsistentRead && !l.index.Local {
		return wire.Invalid("Consistent reads are not supported on global secondary indexes")
	}
	if l.index.Projected == nil {
		return nil
	}
	if l.index.Local {
		l.fetches = in.Select == "ALL_ATTRIBUTES" || slices.ContainsFunc(l.projection, func(path expr.Path) bool { return !l.index.Projected[path[0].Name] })
		return nil
	}
	if in.Select == "ALL_ATTRIBUTES" {
		return wire.Invalid("One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for global secondary index %s because its projection type is not ALL", l.index.Name)
	}
	for _, path := range l.projection {
		if !l.index.Projected[path[0].Name] {
			return wire.Invalid("One or more parameter values were invalid: Global secondary index %s does not project [%s]", l.index.Name, path[0].Name)
		}
	}
	return nil
}

// key returns the key of the index, or the key of the table if the request names no index. This key
// determines the order of the items in the response.
func (l *QueryOrScan) key() []expr.KeyAttribute {
	if l.index != nil {
		return l.index.Key
	}
	return l.table.Key
}

// queryRange computes the range of keys that a Query reads.
func (l *QueryOrScan) queryRange() error {
	r, err := l.condition.KeyRange(l.key())
	if err != nil {
		return wire.AsInvalid(err)
	}
	if err := l.checkFilter(); err != nil {
		return err
	}
	l.setRange(r)
	return l.startAfter("The provided starting key is invalid", "The provided starting key is outside query boundaries based on provided conditions")
}

// checkFilter validates the filter of a Query. The filter must not use key attributes. If the
// request reads an index, the index must project every attribute in the filter.
func (l *QueryOrScan) checkFilter() error {
	var missing []string
	for _, path := range l.filter.Paths() {
		name := path[0].Name
		for _, k := range l.key() {
			if k.Name == name {
				return wire.Invalid("Filter Expression can only contain non-primary key attributes: Primary key attribute: %s", name)
			}
		}
		if l.index != nil && l.index.Projected != nil && !l.index.Projected[name] {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		return wire.Invalid("One or more parameter values were invalid: Secondary index %s does not project one or more filter attributes: [%s]", l.index.Name, strings.Join(missing, ", "))
	}
	return nil
}

// setRange sets the range of keys that a Query reads.
func (l *QueryOrScan) setRange(r *expr.KeyRange) {
	common := schema.EncodePartition(r.Partition)
	for _, v := range r.Equal {
		common = v.AppendSortableBytes(common)
	}
	l.start, l.end = common, prefixSuccessor(common)
	with := func(v *attr.Value) []byte { return v.AppendSortableBytes(bytes.Clone(common)) }
	if r.Prefix != nil {
		l.start = attr.AppendSortablePrefix(bytes.Clone(common), r.Prefix.Text)
		l.end = prefixSuccessor(l.start)
	}
	if r.Low != nil {
		if l.start = with(r.Low); r.LowOpen {
			l.start = prefixSuccessor(l.start)
		}
	}
	if r.High != nil {
		if l.end = with(r.High); !r.HighOpen {
			l.end = prefixSuccessor(l.end)
		}
	}
}

// prefixSuccessor returns the smallest byte string that is greater than all byte strings with the
// prefix. If there is no such byte string, prefixSuccessor returns nil.
func prefixSuccessor(prefix []byte) []byte {
	next := bytes.Clone(prefix)
	for i := len(next) - 1; i >= 0; i-- {
		if next[i]++; next[i] != 0 {
			return next[:i+1]
		}
	}
	return nil
}

// startAfter limits the range to the keys that follow ExclusiveStartKey. If ExclusiveStartKey is
// not a key of the table or index, the error message is the parameter mismatch. If the key is
// outside the range, the error message is the parameter outside.
func (l *QueryOrScan) startAfter(mismatch, outside string) error {
	key := l.ExclusiveStartKey
	if key == nil {
		return nil
	}
	if _, err := key.Normalize(); err != nil {
		return wire.AsInvalid(err)
	}
	names := map[string]attr.Kind{}
	for _, k := range l.table.Key {
		names[k.Name] = k.Kind
	}
	if l.index != nil {
		for _, k := range l.index.Key {
			names[k.Name] = k.Kind
		}
	}
	for name, kind := range names {
		if v, ok := key[name]; !ok || v.Kind != kind || len(key) != len(names) {
			return wire.Invalid("%s", mismatch)
		}
	}
	if err := l.table.CheckKeySizes(key); err != nil {
		return wire.Invalid("The provided starting key is invalid: %v", err)
	}
	if fault := l.table.CheckIndexKeys(key, ""); fault != nil {
		return wire.AsInvalid(fault)
	}
	position := schema.EncodeKey(l.table.Key, key)
	if l.index != nil {
		position = l.index.EntryKey(key, position)
	}
	if bytes.Compare(position, l.start) < 0 || l.end != nil && bytes.Compare(position, l.end) >= 0 {
		return wire.Invalid("%s", outside)
	}
	if l.backward {
		l.end = position
	} else {
		l.start = slices.Concat(position, []byte{0})
	}
	return nil
}

// scanRange computes the range of keys that a Scan reads.
func (l *QueryOrScan) scanRange() error {
	in := l.QueryOrScanInput
	if in.Segment != nil {
		// Each stored key begins with a hash byte. A segment of a Scan is a range of hash bytes.
		first, next := *in.Segment*256 / *in.TotalSegments, (*in.Segment+1)*256 / *in.TotalSegments
		l.start = []byte{byte(first)}
		if next < 256 {
			l.end = []byte{byte(next)}
		}
		if first == next {
			l.start, l.end = []byte{1}, []byte{0} // no hash byte belongs to this segment
		}
	}
	const prefix = "The provided starting key is invalid: "
	return l.startAfter(prefix+schema.ErrKeySchema.Error(), prefix+"Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct Segment.")
}
