package embedded

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"go.etcd.io/bbolt"

	"github.com/ordergraph/ordergraph/internal/embedded/attr"
	"github.com/ordergraph/ordergraph/internal/embedded/expr"
)

// Parts of DynamoDB's requests and responses, by their names in the API.
type (
	attributeDefinition struct {
		AttributeName, AttributeType string
	}
	keyElement struct {
		AttributeName, KeyType string
	}
	indexProjection struct {
		ProjectionType   string   `json:",omitzero"`
		NonKeyAttributes []string `json:",omitzero"`
	}
	throughput struct {
		ReadCapacityUnits, WriteCapacityUnits int64
	}
	indexDefinition struct {
		IndexName             string
		KeySchema             []keyElement
		Projection            *indexProjection
		ProvisionedThroughput *throughput `json:",omitzero"`
	}
	streamSpecification struct {
		StreamEnabled  bool
		StreamViewType string `json:",omitzero"`
	}
	timeToLive struct {
		Enabled       bool
		AttributeName string
	}
	encryption struct {
		Enabled bool
	}
	requestLimits struct {
		MaxReadRequestUnits, MaxWriteRequestUnits int64
	}
)

// definition is what the file has about a table.
type definition struct {
	TableName                 string
	TableID                   string
	Bucket                    uint64 // Bucket is the number of the table's bucket.
	AttributeDefinitions      []attributeDefinition
	KeySchema                 []keyElement
	GlobalSecondaryIndexes    []indexDefinition
	LocalSecondaryIndexes     []indexDefinition `json:",omitzero"`
	BillingMode               string
	ProvisionedThroughput     *throughput
	OnDemandThroughput        *requestLimits `json:",omitzero"`
	SSESpecification          *encryption    `json:",omitzero"`
	Created                   time.Time
	DeletionProtectionEnabled bool
	TableClass                string
	StreamSpecification       *streamSpecification
	StreamLabel               string // StreamLabel names the latest stream, "" without any.
	Expiry                    string // Expiry is the attribute with the time to live, or "".
}

// table is a table's definition with what is derived from it. It is immutable.
type table struct {
	definition
	bucket  []byte
	key     []expr.KeyAttribute
	indexes []*index // indexes are sorted by name
}

// index is a global or local secondary index. Its entries contain no attributes: a read gets the
// projected attributes from the item.
type index struct {
	name   string
	local  bool // local reports whether the index has the table's partition key
	bucket []byte
	key    []expr.KeyAttribute
	// projected has the attributes that the index contains, nil for all.
	projected map[string]bool
}

// The names of the buckets in a table's bucket.
var (
	bucketItems  = []byte("items")
	bucketExpiry = []byte("expiry")
	keyCounts    = []byte("counts")
)

// parseTable decodes a definition in the file.
func parseTable(encoded []byte) (*table, error) {
	t := &table{}
	if err := json.Unmarshal(encoded, &t.definition); err != nil {
		return nil, fmt.Errorf("the definition of a table is damaged: %w", err)
	}
	t.derive()
	return t, nil
}

// derive computes what follows from the definition.
func (t *table) derive() {
	t.bucket = fmt.Appendf(nil, "table-%d", t.Bucket)
	t.key = t.keyAttributes(t.KeySchema)
	t.indexes = nil
	for i, d := range slices.Concat(t.GlobalSecondaryIndexes, t.LocalSecondaryIndexes) {
		x := &index{name: d.IndexName, local: i >= len(t.GlobalSecondaryIndexes), bucket: []byte("index-" + d.IndexName), key: t.keyAttributes(d.KeySchema)}
		if d.Projection != nil && d.Projection.ProjectionType != "ALL" {
			x.projected = map[string]bool{}
			for _, k := range slices.Concat(t.key, x.key) {
				x.projected[k.Name] = true
			}
			for _, name := range d.Projection.NonKeyAttributes {
				x.projected[name] = true
			}
		}
		t.indexes = append(t.indexes, x)
	}
	slices.SortFunc(t.indexes, func(a, b *index) int { return strings.Compare(a.name, b.name) })
}

// keyAttributes returns the attributes of a key with their types.
func (t *table) keyAttributes(schema []keyElement) []expr.KeyAttribute {
	var key []expr.KeyAttribute
	for _, e := range schema {
		for _, d := range t.AttributeDefinitions {
			if d.AttributeName == e.AttributeName {
				key = append(key, expr.KeyAttribute{Name: d.AttributeName, Kind: attr.KindOf(d.AttributeType), Sort: e.KeyType == "RANGE"})
			}
		}
	}
	return key
}

// index returns the index with a name, or nil.
func (t *table) index(name string) *index {
	for _, x := range t.indexes {
		if x.name == name {
			return x
		}
	}
	return nil
}

// arn returns the table's Amazon Resource Name.
func (t *table) arn() string {
	return "arn:aws:dynamodb:" + region + ":000000000000:table/" + t.TableName
}

// streamARN returns the Amazon Resource Name of the table's latest stream.
func (t *table) streamARN() string { return t.arn() + "/stream/" + t.StreamLabel }

// streams reports whether the table's changes are recorded.
func (t *table) streams() bool { return t.StreamSpecification != nil }

// table returns the table with a name or an Amazon Resource Name. It returns
// ResourceNotFoundException.
func (s *Store) table(name string) (*table, error) {
	if t := (*s.tables.Load())[tableName(name)]; t != nil {
		return t, nil
	}
	return nil, notFound()
}

// tableName returns the name in an Amazon Resource Name. Other names are unchanged.
func tableName(name string) string {
	if strings.HasPrefix(name, "arn:") {
		if _, after, ok := strings.Cut(name, ":table/"); ok {
			return after
		}
	}
	return name
}

// table is like Store.table, with the changes of the commit.
func (c *change) table(name string) (*table, error) {
	if t := c.tables[tableName(name)]; t != nil {
		return t, nil
	}
	return nil, notFound()
}

// putTable stores a table's definition. Reads use it after the commit.
func (c *change) putTable(t *table) error {
	encoded, err := json.Marshal(t.definition)
	if err != nil {
		return err
	}
	t.derive()
	return c.replaceTable(t.TableName, t, func(b *bbolt.Bucket) error { return b.Put([]byte(t.TableName), encoded) })
}

// replaceTable changes the bucket of definitions. t is nil if the table is deleted.
func (c *change) replaceTable(name string, t *table, write func(*bbolt.Bucket) error) error {
	c.changed = true
	tables := maps.Clone(c.tables)
	if tables[name] = t; t == nil {
		delete(tables, name)
	}
	c.tables = tables
	c.after = append(c.after, func() {
		c.Store.tables.Store(&tables)
		c.expireLater()
	})
	return write(c.tx.Bucket(bucketTables))
}

// buckets returns the bucket of a table. It returns an error if the table has been deleted or
// changed since the request began, so that the request has to begin again.
func (c *change) buckets(t *table) (*bbolt.Bucket, error) {
	current, err := c.table(t.TableName)
	if err != nil {
		return nil, err
	}
	if current != t {
		return nil, errChanged
	}
	return c.tx.Bucket(t.bucket), nil
}

// errChanged is returned if a table has changed since the request began.
var errChanged = &failure{kind: codeInternal, message: "The table was changed during the request"}

// retryChanged repeats a request as long as its table has changed meanwhile.
func retryChanged(request func() error) error {
	for {
		if err := request(); !errors.Is(err, errChanged) {
			return err
		}
	}
}

// countsKey returns the key of the counts of an index, or of the table for nil.
func countsKey(x *index) []byte {
	if x == nil {
		return keyCounts
	}
	return append(append([]byte{}, keyCounts...), "-"+x.name...)
}

// counts returns the number of items of the table or an index, and their size in bytes.
func counts(b *bbolt.Bucket, x *index) (items, size int64) {
	if v := b.Get(countsKey(x)); len(v) == 16 {
		return int64(binary.BigEndian.Uint64(v)), int64(binary.BigEndian.Uint64(v[8:]))
	}
	return 0, 0
}

// count adds to the number of items of the table or an index, and to their size in bytes.
func count(b *bbolt.Bucket, x *index, items, size int64) error {
	if items == 0 && size == 0 {
		return nil
	}
	oldItems, oldSize := counts(b, x)
	v := binary.BigEndian.AppendUint64(nil, uint64(oldItems+items))
	return b.Put(countsKey(x), binary.BigEndian.AppendUint64(v, uint64(oldSize+size)))
}

// describe adds a table's description to a response.
func (s *Store) describe(o *object, member string, t *table, status string) error {
	return s.db.View(func(tx *bbolt.Tx) error {
		var items, size int64
		indexed, indexBytes := map[string]int64{}, map[string]int64{}
		if b := tx.Bucket(t.bucket); b != nil {
			items, size = counts(b, nil)
			for _, x := range t.indexes {
				indexed[x.name], indexBytes[x.name] = counts(b, x)
			}
		}
		o.nested(member, func() {
			o.text("TableName", t.TableName)
			o.text("TableStatus", status)
			o.text("TableArn", t.arn())
			o.text("TableId", t.TableID)
			o.float("CreationDateTime", float64(t.Created.UnixMilli())/1000)
			o.value("AttributeDefinitions", t.AttributeDefinitions)
			o.value("KeySchema", t.KeySchema)
			o.int("ItemCount", int(items))
			o.int("TableSizeBytes", int(size))
			o.bool("DeletionProtectionEnabled", t.DeletionProtectionEnabled)
			describeThroughput(o, t.ProvisionedThroughput)
			if t.BillingMode == payPerRequest {
				o.nested("BillingModeSummary", func() { o.text("BillingMode", payPerRequest) })
			}
			if t.OnDemandThroughput != nil {
				o.value("OnDemandThroughput", t.OnDemandThroughput)
			}
			if t.SSESpecification != nil && t.SSESpecification.Enabled {
				o.nested("SSEDescription", func() {
					o.text("Status", "ENABLED")
					o.text("SSEType", "KMS")
					o.text("KMSMasterKeyArn", "arn:aws:kms:"+region+":000000000000:alias/aws/dynamodb")
				})
			}
			if t.TableClass != "" {
				o.nested("TableClassSummary", func() { o.text("TableClass", t.TableClass) })
			}
			describeIndex := func(d indexDefinition) {
				o.text("IndexName", d.IndexName)
				o.text("IndexArn", t.arn()+"/index/"+d.IndexName)
				o.value("KeySchema", d.KeySchema)
				o.value("Projection", d.Projection)
				o.int("ItemCount", int(indexed[d.IndexName]))
				o.int("IndexSizeBytes", int(indexBytes[d.IndexName]))
			}
			if len(t.GlobalSecondaryIndexes) > 0 {
				o.list("GlobalSecondaryIndexes", len(t.GlobalSecondaryIndexes), func(i int) {
					o.open()
					describeIndex(t.GlobalSecondaryIndexes[i])
					o.text("IndexStatus", "ACTIVE")
					describeThroughput(o, t.GlobalSecondaryIndexes[i].ProvisionedThroughput)
					o.close()
				})
			}
			if len(t.LocalSecondaryIndexes) > 0 {
				o.list("LocalSecondaryIndexes", len(t.LocalSecondaryIndexes), func(i int) {
					o.open()
					describeIndex(t.LocalSecondaryIndexes[i])
					o.close()
				})
			}
			if t.StreamSpecification != nil {
				o.value("StreamSpecification", t.StreamSpecification)
			}
			if t.StreamLabel != "" {
				o.text("LatestStreamLabel", t.StreamLabel)
				o.text("LatestStreamArn", t.streamARN())
			}
		})
		return nil
	})
}

func describeThroughput(o *object, p *throughput) {
	if p == nil {
		p = &throughput{}
	}
	o.nested("ProvisionedThroughput", func() {
		o.int("NumberOfDecreasesToday", 0)
		o.int("ReadCapacityUnits", int(p.ReadCapacityUnits))
		o.int("WriteCapacityUnits", int(p.WriteCapacityUnits))
	})
}

const (
	payPerRequest = "PAY_PER_REQUEST"
	provisioned   = "PROVISIONED"
)

// createTableInput has the parameters of CreateTable.
type createTableInput struct {
	TableName                 *string
	AttributeDefinitions      []attributeDefinition
	KeySchema                 []keyElement
	GlobalSecondaryIndexes    []indexDefinition
	LocalSecondaryIndexes     []indexDefinition
	BillingMode               string
	ProvisionedThroughput     *throughput
	OnDemandThroughput        *requestLimits
	SSESpecification          *encryption
	DeletionProtectionEnabled bool
	TableClass                string
	StreamSpecification       *streamSpecification
}

func (s *Store) createTable(_ context.Context, in *createTableInput) ([]byte, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	t := &table{definition: definition{
		TableName: *in.TableName, TableID: uuid.NewString(), AttributeDefinitions: in.AttributeDefinitions, KeySchema: in.KeySchema,
		GlobalSecondaryIndexes: in.GlobalSecondaryIndexes, LocalSecondaryIndexes: in.LocalSecondaryIndexes,
		BillingMode: in.BillingMode, ProvisionedThroughput: in.ProvisionedThroughput,
		OnDemandThroughput: in.OnDemandThroughput, SSESpecification: in.SSESpecification,
		Created: s.now(), DeletionProtectionEnabled: in.DeletionProtectionEnabled, TableClass: in.TableClass,
	}}
	if t.BillingMode == "" {
		t.BillingMode = provisioned
	}
	if in.StreamSpecification != nil && in.StreamSpecification.StreamEnabled {
		t.StreamSpecification = in.StreamSpecification
	}
	err := s.commit(func(c *change) error {
		if c.tables[t.TableName] != nil {
			return &failure{kind: codeInUse, message: "Table already exists: " + t.TableName}
		}
		var err error
		if t.Bucket, err = c.tx.Bucket(bucketTables).NextSequence(); err != nil {
			return err
		}
		t.derive()
		b, err := c.tx.CreateBucket(t.bucket)
		if err != nil {
			return err
		}
		for _, name := range [][]byte{bucketItems, bucketExpiry} {
			if _, err := b.CreateBucket(name); err != nil {
				return err
			}
		}
		for _, x := range t.indexes {
			if _, err := b.CreateBucket(x.bucket); err != nil {
				return err
			}
		}
		if t.streams() {
			if err := c.openStream(t); err != nil {
				return err
			}
		}
		return c.putTable(t)
	})
	if err != nil {
		return nil, err
	}
	return s.described("TableDescription", t, "ACTIVE")
}

// described returns a response that is a table's description.
func (s *Store) described(member string, t *table, status string) ([]byte, error) {
	o := newObject()
	if err := s.describe(o, member, t, status); err != nil {
		return nil, err
	}
	return o.done(), nil
}

var (
	namePattern      = regexp.MustCompile(`^[a-zA-Z0-9_.-]+$`)
	tableNamePattern = regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)
)

// check validates the parameters.
func (in *createTableInput) check() error {
	if in.TableName == nil {
		return invalid("The parameter 'TableName' is required but was not present in the request")
	}
	v := &violations{}
	v.name(*in.TableName, "tableName", 3)
	v.enum(in.BillingMode, "billingMode", provisioned, payPerRequest)
	for i, d := range in.AttributeDefinitions {
		v.enum(d.AttributeType, fmt.Sprintf("attributeDefinitions.%d.member.attributeType", i+1), "B", "N", "S")
	}
	if v.list(len(in.KeySchema), 2, "keySchema", func() string { return describeSchema(in.KeySchema) }) {
		v.schema(in.KeySchema, "keySchema")
	}
	v.indexes(in.GlobalSecondaryIndexes, "globalSecondaryIndexes", 2*maxKeyParts)
	v.indexes(in.LocalSecondaryIndexes, "localSecondaryIndexes", 2)
	if in.StreamSpecification != nil {
		v.enum(in.StreamSpecification.StreamViewType, "streamSpecification.streamViewType", viewTypes...)
	}
	v.enum(in.TableClass, "tableClass", "STANDARD", "STANDARD_INFREQUENT_ACCESS")
	if err := v.error(); err != nil {
		return err
	}
	if err := checkStreamSpecification(in.StreamSpecification, true); err != nil {
		return err
	}
	if in.LocalSecondaryIndexes != nil && len(in.LocalSecondaryIndexes) == 0 {
		return invalid("One or more parameter values were invalid: List of LocalSecondaryIndexes is empty")
	}
	if in.GlobalSecondaryIndexes != nil && len(in.GlobalSecondaryIndexes) == 0 {
		return invalid("One or more parameter values were invalid: List of GlobalSecondaryIndexes is empty")
	}
	if len(in.LocalSecondaryIndexes) > 0 {
		if len(in.KeySchema) < 2 {
			return invalid("One or more parameter values were invalid: Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex")
		}
		for _, d := range in.LocalSecondaryIndexes {
			if err := checkProjection(d.Projection); err != nil {
				return err
			}
		}
	}
	if err := checkBilling(in.BillingMode, in.ProvisionedThroughput, in.GlobalSecondaryIndexes); err != nil {
		return err
	}
	return checkSchemas(in.AttributeDefinitions, in.KeySchema, in.GlobalSecondaryIndexes, in.LocalSecondaryIndexes)
}

// maxKeyParts is the maximum number of attributes of an index's partition key, and of its sort key.
//
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.DesignPattern.MultiAttributeKeys.html
const maxKeyParts = 4

// indexes validates the definitions of indexes. most is the maximum number of attributes of a key.
func (v *violations) indexes(indexes []indexDefinition, list string, most int) {
	for i, d := range indexes {
		field := fmt.Sprintf("%s.%d.member.", list, i+1)
		v.name(d.IndexName, field+"indexName", 3)
		if v.list(len(d.KeySchema), most, field+"keySchema", func() string { return describeSchema(d.KeySchema) }) {
			v.schema(d.KeySchema, field+"keySchema")
		}
		v.projection(d.Projection, field+"projection")
	}
}

// describeSchema returns a key schema as it stands in messages.
func describeSchema(schema []keyElement) string {
	parts := make([]string, len(schema))
	for i, e := range schema {
		parts[i] = fmt.Sprintf("KeySchemaElement(attributeName=%s, keyType=%s)", e.AttributeName, e.KeyType)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// schema validates the types of a key's elements.
func (v *violations) schema(schema []keyElement, field string) {
	for i, e := range schema {
		v.enum(e.KeyType, fmt.Sprintf("%s.%d.member.keyType", field, i+1), "HASH", "RANGE")
	}
}

// projection validates the type of an index's projection.
func (v *violations) projection(p *indexProjection, field string) {
	if p == nil {
		v.null(field)
		return
	}
	v.enum(p.ProjectionType, field+".projectionType", "ALL", "INCLUDE", "KEYS_ONLY")
}

// checkBilling validates the billing mode with the throughput.
func checkBilling(mode string, p *throughput, indexes []indexDefinition) error {
	if mode == payPerRequest {
		if p != nil && (p.ReadCapacityUnits != 0 || p.WriteCapacityUnits != 0) {
			return invalid("One or more parameter values were invalid: Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST")
		}
		return nil
	}
	if p == nil {
		return invalid("One or more parameter values were invalid: ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED")
	}
	for _, d := range indexes {
		if d.ProvisionedThroughput == nil {
			return invalid("One or more parameter values were invalid: ProvisionedThroughput must be specified for index: %s", d.IndexName)
		}
	}
	for _, u := range []struct {
		name  string
		units int64
	}{{"readCapacityUnits", p.ReadCapacityUnits}, {"writeCapacityUnits", p.WriteCapacityUnits}} {
		if u.units < 1 {
			return invalid("1 validation error detected: Value '%d' at 'provisionedThroughput.%s' failed to satisfy constraint: Member must have value greater than or equal to 1", u.units, u.name)
		}
	}
	return nil
}

// checkSchemas validates the keys of a table and its indexes with the definitions of their
// attributes.
func checkSchemas(definitions []attributeDefinition, key []keyElement, global, local []indexDefinition) error {
	if err := checkSchema("", definitions, key); err != nil {
		return err
	}
	used := map[string]bool{}
	for _, e := range key {
		used[e.AttributeName] = true
	}
	names := map[string]bool{}
	for i, d := range slices.Concat(local, global) {
		if names[d.IndexName] {
			return invalid("One or more parameter values were invalid: Duplicate index name: %s", d.IndexName)
		}
		names[d.IndexName] = true
		if err := checkSchema("for index "+d.IndexName, definitions, d.KeySchema); err != nil {
			return err
		}
		if i < len(local) {
			if err := checkLocalSchema(d, key[0].AttributeName); err != nil {
				return err
			}
		}
		if err := checkProjection(d.Projection); err != nil {
			return err
		}
		for _, e := range d.KeySchema {
			used[e.AttributeName] = true
		}
	}
	if len(local) > 5 {
		return invalid("One or more parameter values were invalid: LocalSecondaryIndex count exceeds the per-table limit of 5")
	}
	if len(global) > 20 {
		return invalid("One or more parameter values were invalid: GlobalSecondaryIndex count exceeds the per-table limit of 20")
	}
	defined := map[string]bool{}
	for _, d := range definitions {
		if defined[d.AttributeName] {
			return invalid("One or more parameter values were invalid: Duplicate AttributeName in AttributeDefinitions: %s", d.AttributeName)
		}
		defined[d.AttributeName] = true
	}
	if len(defined) > len(used) {
		return invalid("One or more parameter values were invalid: Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions")
	}
	return nil
}

// checkSchema validates one key.
func checkSchema(of string, definitions []attributeDefinition, key []keyElement) error {
	if key[0].KeyType != "HASH" {
		return invalid("Invalid KeySchema: The first KeySchemaElement is not a HASH key type")
	}
	if of == "" && len(key) == 2 && key[1].KeyType != "RANGE" {
		return invalid("Invalid KeySchema: The second KeySchemaElement is not a RANGE key type")
	}
	names, parts := map[string]bool{}, map[string]int{}
	for i, e := range key {
		if parts[e.KeyType]++; parts[e.KeyType] > maxKeyParts || i > 0 && e.KeyType == "HASH" && key[i-1].KeyType == "RANGE" {
			return invalid("Invalid KeySchema: A key has at most %d HASH key types, and then at most %d RANGE key types", maxKeyParts, maxKeyParts)
		}
		if names[e.AttributeName] && of != "" {
			return invalid("Both the Hash Key and the Range Key element in the KeySchema have the same name")
		}
		if names[e.AttributeName] {
			return invalid("Invalid KeySchema: Some index key attribute have no definition")
		}
		names[e.AttributeName] = true
	}
	for _, e := range key {
		if !slices.ContainsFunc(definitions, func(d attributeDefinition) bool { return d.AttributeName == e.AttributeName }) {
			var names []string
			for _, d := range definitions {
				names = append(names, d.AttributeName)
			}
			var keys []string
			for _, e := range key {
				keys = append(keys, e.AttributeName)
			}
			if of != "" {
				return invalid("One or more parameter values were invalid: Some index key attributes are not defined in AttributeDefinitions. Keys: [%s], AttributeDefinitions: [%s]", strings.Join(keys, ", "), strings.Join(names, ", "))
			}
			return invalid("Invalid KeySchema: Some index key attribute have no definition")
		}
	}
	return nil
}

// checkLocalSchema validates the key of a local secondary index. partition is the table's partition
// key.
func checkLocalSchema(d indexDefinition, partition string) error {
	switch hash := d.KeySchema[0].AttributeName; {
	case len(d.KeySchema) < 2:
		return invalid("One or more parameter values were invalid: Index KeySchema does not have a range key for index: %s", d.IndexName)
	case d.KeySchema[1].KeyType != "RANGE":
		return invalid("Invalid KeySchema: The second KeySchemaElement is not a RANGE key type")
	case hash != partition:
		return invalid("One or more parameter values were invalid: Index KeySchema does not have the same leading hash key as table KeySchema for index: %s. index hash key: %s, table hash key: %s", d.IndexName, hash, partition)
	}
	return nil
}

// checkProjection validates an index's projection.
func checkProjection(p *indexProjection) error {
	switch {
	case p.ProjectionType == "":
		return invalid("One or more parameter values were invalid: Unknown ProjectionType: null")
	case p.ProjectionType == "INCLUDE" && len(p.NonKeyAttributes) == 0:
		return invalid("One or more parameter values were invalid: ProjectionType is INCLUDE, but NonKeyAttributes is not specified")
	case p.ProjectionType != "INCLUDE" && len(p.NonKeyAttributes) > 0:
		return invalid("One or more parameter values were invalid: ProjectionType is %s, but NonKeyAttributes is specified", p.ProjectionType)
	}
	return nil
}

// tableInput has the parameters of operations on one table.
type tableInput struct{ TableName *string }

func (in *tableInput) check() error {
	v := &violations{}
	v.table(in.TableName)
	return v.error()
}

func (s *Store) describeTable(_ context.Context, in *tableInput) ([]byte, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	t, err := s.table(*in.TableName)
	if err != nil {
		return nil, &failure{kind: codeNotFound, message: "Requested resource not found: Table: " + *in.TableName + " not found"}
	}
	return s.described("Table", t, "ACTIVE")
}

func (s *Store) deleteTable(_ context.Context, in *tableInput) ([]byte, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	var t *table
	o := newObject()
	err := s.commit(func(c *change) (err error) {
		if t, err = c.table(*in.TableName); err != nil {
			return &failure{kind: codeNotFound, message: "Requested resource not found: Table: " + *in.TableName + " not found"}
		}
		if t.DeletionProtectionEnabled {
			return invalid("Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.")
		}
		if err := s.describe(o, "TableDescription", t, "DELETING"); err != nil {
			return err
		}
		if t.streams() {
			if err := c.closeStream(t); err != nil {
				return err
			}
		}
		if err := c.tx.DeleteBucket(t.bucket); err != nil {
			return err
		}
		return c.replaceTable(t.TableName, nil, func(b *bbolt.Bucket) error { return b.Delete([]byte(t.TableName)) })
	})
	if err != nil {
		return nil, err
	}
	return o.done(), nil
}

func (s *Store) listTables(_ context.Context, in *struct {
	ExclusiveStartTableName string
	Limit                   *int
}) ([]byte, error) {
	v := &violations{}
	limit := 100
	if in.Limit != nil {
		limit = *in.Limit
		v.atLeast(limit, 1, "limit")
		v.atMost(limit, 100, "limit")
	}
	if in.ExclusiveStartTableName != "" {
		v.name(in.ExclusiveStartTableName, "exclusiveStartTableName", 3)
	}
	if err := v.error(); err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(*s.tables.Load()))
	names = slices.DeleteFunc(names, func(name string) bool { return name <= in.ExclusiveStartTableName })
	o := newObject()
	page := names[:min(limit, len(names))]
	o.list("TableNames", len(page), func(i int) { o.element(attr.AppendQuote(nil, page[i])) })
	if len(page) < len(names) {
		o.text("LastEvaluatedTableName", page[len(page)-1])
	}
	return o.done(), nil
}

func (s *Store) describeEndpoints(context.Context, *struct{}) ([]byte, error) {
	o := newObject()
	o.list("Endpoints", 1, func(int) {
		o.open()
		o.text("Address", "localhost")
		o.int("CachePeriodInMinutes", 1440)
		o.close()
	})
	return o.done(), nil
}

func (s *Store) describeLimits(context.Context, *struct{}) ([]byte, error) {
	o := newObject()
	for _, name := range []string{"AccountMaxReadCapacityUnits", "AccountMaxWriteCapacityUnits"} {
		o.int(name, 80000)
	}
	for _, name := range []string{"TableMaxReadCapacityUnits", "TableMaxWriteCapacityUnits"} {
		o.int(name, 40000)
	}
	return o.done(), nil
}

// updateTableInput has the parameters of UpdateTable.
type updateTableInput struct {
	TableName                   *string
	AttributeDefinitions        []attributeDefinition
	BillingMode                 string
	ProvisionedThroughput       *throughput
	OnDemandThroughput          *requestLimits
	SSESpecification            *encryption
	DeletionProtectionEnabled   *bool
	TableClass                  string
	StreamSpecification         *streamSpecification
	GlobalSecondaryIndexUpdates []struct {
		Create *indexDefinition
		Update *struct {
			IndexName             string
			ProvisionedThroughput *throughput
		}
		Delete *struct{ IndexName string }
	}
}

func (s *Store) updateTable(_ context.Context, in *updateTableInput) ([]byte, error) {
	v := &violations{}
	v.table(in.TableName)
	v.enum(in.BillingMode, "billingMode", provisioned, payPerRequest)
	if in.StreamSpecification != nil {
		v.enum(in.StreamSpecification.StreamViewType, "streamSpecification.streamViewType", viewTypes...)
	}
	if err := v.error(); err != nil {
		return nil, err
	}
	if in.BillingMode == "" && in.ProvisionedThroughput == nil && in.OnDemandThroughput == nil && in.SSESpecification == nil && in.DeletionProtectionEnabled == nil && in.TableClass == "" && in.StreamSpecification == nil && len(in.GlobalSecondaryIndexUpdates) == 0 {
		return nil, invalid("At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates or SSESpecification or ReplicaUpdates is required")
	}
	if err := checkStreamSpecification(in.StreamSpecification, false); err != nil {
		return nil, err
	}
	var t *table
	err := s.commit(func(c *change) error {
		old, err := c.table(*in.TableName)
		if err != nil {
			return &failure{kind: codeNotFound, message: "Requested resource not found: Table: " + *in.TableName + " not found"}
		}
		t = &table{definition: old.definition}
		if err := in.apply(t); err != nil {
			return err
		}
		t.derive()
		// Nothing fails after this point, except for errors of the file.
		if in.StreamSpecification != nil && old.streams() {
			if err := c.closeStream(old); err != nil {
				return err
			}
		}
		if in.StreamSpecification != nil && t.streams() {
			if err := c.openStream(t); err != nil {
				return err
			}
		}
		b := c.tx.Bucket(t.bucket)
		for _, x := range old.indexes {
			if t.index(x.name) == nil {
				if err := errors.Join(b.DeleteBucket(x.bucket), b.Delete(countsKey(x))); err != nil {
					return err
				}
			}
		}
		for _, x := range t.indexes {
			if old.index(x.name) == nil {
				if err := fillIndex(b, x); err != nil {
					return err
				}
			}
		}
		return c.putTable(t)
	})
	if err != nil {
		return nil, err
	}
	return s.described("TableDescription", t, "ACTIVE")
}

// apply changes the definition of a table.
func (in *updateTableInput) apply(t *table) error {
	if in.BillingMode != "" {
		t.BillingMode = in.BillingMode
		if in.BillingMode == payPerRequest {
			t.ProvisionedThroughput = nil
		}
	}
	if in.ProvisionedThroughput != nil || in.BillingMode == provisioned && t.ProvisionedThroughput == nil {
		if err := checkBilling(t.BillingMode, in.ProvisionedThroughput, nil); err != nil {
			return err
		}
		if old, set := t.ProvisionedThroughput, in.ProvisionedThroughput; old != nil && *old == *set {
			return invalid("The provisioned throughput for the table will not change. The requested value equals the current value. Current ReadCapacityUnits provisioned for the table: %d. Requested ReadCapacityUnits: %d. Current WriteCapacityUnits provisioned for the table: %d. Requested WriteCapacityUnits: %d. Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits.",
				old.ReadCapacityUnits, set.ReadCapacityUnits, old.WriteCapacityUnits, set.WriteCapacityUnits)
		}
		t.ProvisionedThroughput = in.ProvisionedThroughput
	}
	if in.OnDemandThroughput != nil {
		t.OnDemandThroughput = in.OnDemandThroughput
	}
	if in.SSESpecification != nil {
		t.SSESpecification = in.SSESpecification
	}
	if in.DeletionProtectionEnabled != nil {
		t.DeletionProtectionEnabled = *in.DeletionProtectionEnabled
	}
	if in.TableClass != "" {
		t.TableClass = in.TableClass
	}
	if set := in.StreamSpecification; set != nil {
		if set.StreamEnabled == t.streams() {
			if set.StreamEnabled {
				return invalid("Table already has an enabled stream: TableName: %s", t.TableName)
			}
			return invalid("Table is already disabled for streams: TableName: %s", t.TableName)
		}
		if t.StreamSpecification = set; !set.StreamEnabled {
			t.StreamSpecification = nil
		}
	}
	return in.applyIndexes(t)
}

// applyIndexes adds, changes and removes global secondary indexes in the definition of a table.
// Local secondary indexes never change.
func (in *updateTableInput) applyIndexes(t *table) error {
	t.GlobalSecondaryIndexes = slices.Clone(t.GlobalSecondaryIndexes)
	at := func(name string) int {
		return slices.IndexFunc(t.GlobalSecondaryIndexes, func(d indexDefinition) bool { return d.IndexName == name })
	}
	isLocal := func(name string) bool {
		return slices.ContainsFunc(t.LocalSecondaryIndexes, func(d indexDefinition) bool { return d.IndexName == name })
	}
	for _, u := range in.GlobalSecondaryIndexUpdates {
		switch {
		case u.Create != nil:
			if at(u.Create.IndexName) >= 0 || isLocal(u.Create.IndexName) {
				return invalid("Attempting to create an index which already exists")
			}
			for _, d := range in.AttributeDefinitions {
				if !slices.Contains(t.AttributeDefinitions, d) {
					t.AttributeDefinitions = append(slices.Clone(t.AttributeDefinitions), d)
				}
			}
			t.GlobalSecondaryIndexes = append(t.GlobalSecondaryIndexes, *u.Create)
			if u.Create.Projection == nil || len(u.Create.KeySchema) == 0 {
				return invalid("One or more parameter values were invalid: an index needs a KeySchema and a Projection")
			}
		case u.Delete != nil:
			if isLocal(u.Delete.IndexName) {
				return invalid("Cannot delete an index that is not a GlobalSecondaryIndex")
			}
			i := at(u.Delete.IndexName)
			if i < 0 {
				return notFound()
			}
			t.GlobalSecondaryIndexes = slices.Delete(t.GlobalSecondaryIndexes, i, i+1)
			t.dropUnusedDefinitions()
		case u.Update != nil:
			i := at(u.Update.IndexName)
			if i < 0 {
				return notFound()
			}
			t.GlobalSecondaryIndexes[i].ProvisionedThroughput = u.Update.ProvisionedThroughput
		}
	}
	return checkSchemas(t.AttributeDefinitions, t.KeySchema, t.GlobalSecondaryIndexes, t.LocalSecondaryIndexes)
}

// dropUnusedDefinitions removes the definitions of attributes that are in no key.
func (t *table) dropUnusedDefinitions() {
	used := map[string]bool{}
	for _, e := range t.KeySchema {
		used[e.AttributeName] = true
	}
	for _, d := range slices.Concat(t.GlobalSecondaryIndexes, t.LocalSecondaryIndexes) {
		for _, e := range d.KeySchema {
			used[e.AttributeName] = true
		}
	}
	t.AttributeDefinitions = slices.DeleteFunc(slices.Clone(t.AttributeDefinitions), func(d attributeDefinition) bool { return !used[d.AttributeName] })
}

// fillIndex creates an index's bucket from the table's items.
func fillIndex(b *bbolt.Bucket, x *index) error {
	entries, err := b.CreateBucket(x.bucket)
	if err != nil {
		return err
	}
	var items, total int64
	err = b.Bucket(bucketItems).ForEach(func(key, stored []byte) error {
		size, encoded := splitStored(stored)
		item, err := attr.ParseItem(encoded)
		if err != nil {
			return err
		}
		entry := x.entry(item, key)
		if entry == nil {
			return nil
		}
		items, total = items+1, total+x.size(item, size)
		return entries.Put(entry, key)
	})
	if err != nil {
		return err
	}
	return count(b, x, items, total)
}
