package dynamo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// CreateTable creates the table, and waits until the table is ready. It also enables the deletion
// of expired idempotency records.
//
// Errors: table.ErrTableExists, table.ErrUnavailable and table.ErrAccessDenied.
func (s *Store) CreateTable(ctx context.Context) error {
	var attributes []types.AttributeDefinition
	for _, name := range []string{model.AttrPK, model.AttrSK, model.AttrIndexPK, model.AttrIndexSK} {
		attributes = append(attributes, types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: types.ScalarAttributeTypeS})
	}
	out, err := s.table.Client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            &s.table.Name,
		AttributeDefinitions: attributes,
		KeySchema:            tableKeySchema(),
		BillingMode:          types.BillingModePayPerRequest,
		StreamSpecification:  requiredStream(),
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName:  aws.String(model.IndexName),
			KeySchema:  indexKeySchema(),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}},
	})
	if err != nil {
		return table.WrapError("CreateTable", s.table.Name, err)
	}
	// Amazon DynamoDB responds before the table is ready. Local engines respond when the table is
	// ready.
	if out.TableDescription.TableStatus == types.TableStatusCreating {
		if err := s.waitForTable(ctx); err != nil {
			return table.WrapError("CreateTable", s.table.Name, err)
		}
	}
	if err := s.table.InitLayout(ctx); err != nil {
		return err
	}
	return s.EnableExpiry(ctx)
}

// InitEmptyTable stores the layout of a table that other software has created. If the table has
// records, it does nothing.
//
// Errors: table.ErrUnavailable, table.ErrNoTable and table.ErrAccessDenied.
func (s *Store) InitEmptyTable(ctx context.Context) error {
	if hasRecords, err := s.HasRecords(ctx); err != nil || hasRecords {
		return err
	}
	return s.table.InitLayout(ctx)
}

// waitForTable waits until the table is ready.
func (s *Store) waitForTable(ctx context.Context) error {
	return dynamodb.NewTableExistsWaiter(s.table.Client).Wait(ctx, &dynamodb.DescribeTableInput{TableName: &s.table.Name}, 5*time.Minute)
}

// requiredStream returns the settings of the DynamoDB stream that the change feed needs.
func requiredStream() *types.StreamSpecification {
	return &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewType(table.RequiredStreamView)}
}

// EnableStream enables the stream that subscriptions need, unless the table already has such a
// stream.
//
// Errors: table.ErrStreamViewType (the table has a stream with another view type),
// table.ErrNoTable, table.ErrUnavailable and table.ErrAccessDenied.
func (s *Store) EnableStream(ctx context.Context) error {
	stream, err := s.table.DescribeStream(ctx)
	if err != nil || stream.View == table.RequiredStreamView {
		return err
	}
	if stream.View != "" {
		return fmt.Errorf("%w: the view type of the stream is %s, but subscriptions need %s", table.ErrStreamViewType, stream.View, table.RequiredStreamView)
	}
	out, err := s.table.Client.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: &s.table.Name, StreamSpecification: requiredStream()})
	if err != nil {
		return table.WrapError("UpdateTable", s.table.Name, err)
	}
	if d := out.TableDescription; d != nil && d.TableStatus == types.TableStatusUpdating {
		if err := s.waitForTable(ctx); err != nil {
			return table.WrapError("UpdateTable", s.table.Name, err)
		}
	}
	return nil
}

// EnableExpiry enables DynamoDB's time to live (TTL), so that DynamoDB deletes expired idempotency
// records. If TTL is already enabled, EnableExpiry does nothing.
//
// The errors are table.ErrNoTable, table.ErrUnavailable and table.ErrAccessDenied.
func (s *Store) EnableExpiry(ctx context.Context) error {
	on, err := s.expiryEnabled(ctx)
	if err != nil || on {
		return err
	}
	_, err = s.table.Client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               &s.table.Name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(model.AttrExpiresAt), Enabled: aws.Bool(true)},
	})
	if err != nil {
		return table.WrapError("UpdateTimeToLive", s.table.Name, err)
	}
	return nil
}

// expiryEnabled reports whether DynamoDB deletes expired idempotency records.
func (s *Store) expiryEnabled(ctx context.Context) (bool, error) {
	out, err := s.table.Client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &s.table.Name})
	if err != nil {
		return false, table.WrapError("DescribeTimeToLive", s.table.Name, err)
	}
	d := out.TimeToLiveDescription
	if d == nil || aws.ToString(d.AttributeName) != model.AttrExpiresAt {
		return false, nil
	}
	return d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling, nil
}

// TableDescription describes a table, and how it differs from the data model.
type TableDescription struct {
	// Name is the name of the table. Status is its status in DynamoDB, which is ACTIVE if the table is
	// ready.
	Name, Status string
	// Records and Bytes are the number of records and their size. They are estimates by DynamoDB, and
	// can be several hours old.
	Records, Bytes int64
	// Differences describes how the keys and the index of the table differ from the data model. It is
	// empty if there is no difference.
	Differences []string
	// Layout is the number of shards over time. If Differences is not empty, it is empty.
	Layout model.Layout
	// ShardsMismatch is not nil if records were written with a number of shards other than the
	// configured number. If Differences is not empty, DescribeTable does not check this.
	ShardsMismatch *table.ShardsError
	// Expires reports whether DynamoDB deletes expired idempotency records. The server also works if
	// it does not.
	Expires bool
	// If the table has the stream that subscriptions need, StreamErr is nil. Otherwise, it is an error
	// that describes the missing setting.
	StreamErr error
}

// KeyProblem describes records with the same problem. Example is the key of one of them.
type KeyProblem struct {
	Problem string
	Records int
	Example model.Keys
}

// Mismatch returns an error that wraps table.ErrTableMismatch if the server cannot use the table.
// If only the number of shards is wrong, the error is a table.ShardsError.
func (d TableDescription) Mismatch() error {
	if len(d.Differences) > 0 {
		return fmt.Errorf("%w: %s", table.ErrTableMismatch, strings.Join(d.Differences, "; "))
	}
	if d.ShardsMismatch != nil {
		return d.ShardsMismatch
	}
	return nil
}

// DescribeTable describes the table, and compares it with the data model and the configured number
// of shards.
//
// Errors: table.ErrNoTable, table.ErrUnavailable and table.ErrAccessDenied.
func (s *Store) DescribeTable(ctx context.Context) (TableDescription, error) {
	d, err := s.compareTable(ctx)
	if err != nil {
		return d, err
	}
	d.Expires, err = s.expiryEnabled(ctx)
	return d, err
}

// keySample is the number of records that KeyProblems reads.
const keySample = 1000

// KeyProblems describes records that Ordergraph cannot find because of their keys. It scans only a
// sample of the records.
//
// Errors: table.ErrNoTable, table.ErrUnavailable and table.ErrAccessDenied.
func (s *Store) KeyProblems(ctx context.Context) (found []KeyProblem, err error) {
	out, err := s.table.Client.Scan(ctx, &dynamodb.ScanInput{TableName: &s.table.Name, Limit: aws.Int32(keySample), ProjectionExpression: aws.String(model.AttrPK + ", " + model.AttrSK)})
	if err != nil {
		return nil, table.WrapError("Scan", s.table.Name, err)
	}
	for _, key := range out.Items {
		problem := model.KeyProblem(model.KeyOf(key))
		if problem == "" {
			continue
		}
		i := slices.IndexFunc(found, func(p KeyProblem) bool { return p.Problem == problem })
		if i < 0 {
			i, found = len(found), append(found, KeyProblem{Problem: problem, Example: model.KeyOf(key)})
		}
		found[i].Records++
	}
	return found, nil
}

// compareTable is like DescribeTable, but does not set the field Expires. This saves a request.
func (s *Store) compareTable(ctx context.Context) (TableDescription, error) {
	out, err := s.table.Client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &s.table.Name})
	if err != nil {
		return TableDescription{}, table.WrapError("DescribeTable", s.table.Name, err)
	}
	t := out.Table
	d := TableDescription{Name: s.table.Name, Status: string(t.TableStatus), Records: aws.ToInt64(t.ItemCount), Bytes: aws.ToInt64(t.TableSizeBytes), StreamErr: table.StreamFromDescription(t).CheckView()}
	differ := func(property, want, have string) {
		if want != have {
			d.Differences = append(d.Differences, fmt.Sprintf("%s: expected %s, but the table has %s", property, want, have))
		}
	}
	differ("key", keySchemaText(tableKeySchema()), keySchemaText(t.KeySchema))
	found := false
	for _, index := range t.GlobalSecondaryIndexes {
		if aws.ToString(index.IndexName) != model.IndexName {
			continue
		}
		found = true
		differ("index "+model.IndexName+" key", keySchemaText(indexKeySchema()), keySchemaText(index.KeySchema))
		if index.Projection != nil {
			differ("index "+model.IndexName+" projection", string(types.ProjectionTypeAll), string(index.Projection.ProjectionType))
		}
	}
	if !found {
		differ("index "+model.IndexName, keySchemaText(indexKeySchema()), "no such index")
	}
	for _, a := range t.AttributeDefinitions {
		switch name := aws.ToString(a.AttributeName); name {
		case model.AttrPK, model.AttrSK, model.AttrIndexPK, model.AttrIndexSK:
			differ("type of "+name, string(types.ScalarAttributeTypeS), string(a.AttributeType))
		}
	}
	if len(d.Differences) == 0 {
		if err := s.table.FollowLayout(ctx); err != nil {
			return TableDescription{}, err
		}
		d.Layout = s.table.Layout.Get()
		keys, err := s.keysOfOtherShards(ctx)
		if err != nil {
			return TableDescription{}, err
		}
		if len(keys) > 0 {
			d.ShardsMismatch = &table.ShardsError{Shards: s.table.Layout.Get()[0].Shards, Keys: keys}
		}
	}
	return d, nil
}

// keysOfOtherShards returns partition keys of the index that contain records but belong to no
// configured shard. Lists do not find the records of such keys.
func (s *Store) keysOfOtherShards(ctx context.Context) ([]string, error) {
	layout := s.table.Layout.Get()
	var otherKeys []string
	add := func(p *model.AccessPattern, base string) {
		known := layout.Partitions(p, base)
		numbered := len(known)
		if slices.Contains(known, base) {
			numbered--
		}
		for _, key := range []string{base, base + model.ShardSuffix(numbered, model.MaxShards)} {
			if !slices.Contains(known, key) {
				otherKeys = append(otherKeys, key)
			}
		}
	}
	add(&model.Customers.AccessPattern, string(model.EntityCustomer.IndexPK))
	add(&model.Employees.AccessPattern, string(model.EntityEmployee.IndexPK))
	for _, status := range commerce.Statuses() {
		key, err := model.EntityOrder.IndexPK.Build(status.String())
		if err != nil {
			return nil, err
		}
		add(&model.Orders.AccessPattern, key)
	}
	found := make([]bool, len(otherKeys))
	err := table.Parallel(ctx, len(otherKeys), table.MaxParallel, func(ctx context.Context, i int) error {
		records, _, err := s.table.Query(ctx, &model.Orders.AccessPattern, otherKeys[i], "", model.Range{}, 1, true)
		found[i] = len(records) > 0
		return err
	})
	if err != nil {
		return nil, err
	}
	var keys []string
	for i, key := range otherKeys {
		if found[i] {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// FirstCounters returns the number of records that count orders by status in a table without orders.
func (s *Store) FirstCounters() int { return model.OrderCountParts * s.table.Layout.Get()[0].Shards }

// Shards returns the number of shards for new records.
func (s *Store) Shards() int { return s.table.Layout.Get().At(s.table.Now()).Shards }

// Layout returns the number of shards over time, as the server knows it. If this knowledge is too old, Layout
// reads it from the table.
//
// Errors: the errors of table.Table.CheckLayout.
func (s *Store) Layout(ctx context.Context) (model.Layout, error) {
	if err := s.table.CheckLayout(ctx); err != nil {
		return nil, err
	}
	return s.table.Layout.Get(), nil
}

// TableName returns the name of the table.
func (s *Store) TableName() string { return s.table.Name }

// DescribeRequest is table.Table.DescribeRequest.
func (s *Store) DescribeRequest(p *model.AccessPattern, limit int) []byte {
	return s.table.DescribeRequest(p, limit)
}

// SetTimeZone changes the time zone in which the days of sales begin, and returns the time of the change.
//
// Errors: the errors of table.Table.SetTimeZone.
func (s *Store) SetTimeZone(ctx context.Context, name string) (time.Time, error) {
	return s.table.SetTimeZone(ctx, name)
}

// SetShards changes the number of shards for records that are created later, and returns the time of
// the change. If the number stays the same, the time is zero or in the past. Call CheckTable first.
//
// Errors: the errors of table.Table.SetShards.
func (s *Store) SetShards(ctx context.Context, shards int) (time.Time, error) {
	return s.table.SetShards(ctx, shards)
}

// CheckTable returns an error that wraps table.ErrTableMismatch if the server cannot use the table.
// It also returns the errors of DescribeTable.
func (s *Store) CheckTable(ctx context.Context) error {
	d, err := s.compareTable(ctx)
	if err != nil {
		return err
	}
	return d.Mismatch()
}

// CheckStream returns an error that wraps table.ErrNoStream if the table lacks the stream that
// subscriptions need. It also returns the errors of DescribeTable.
func (s *Store) CheckStream(ctx context.Context) error {
	stream, err := s.table.DescribeStream(ctx)
	if err != nil {
		return err
	}
	return stream.CheckView()
}

func keySchemaText(schema []types.KeySchemaElement) string {
	parts := make([]string, len(schema))
	for i, k := range schema {
		parts[i] = fmt.Sprintf("%s (%s)", aws.ToString(k.AttributeName), k.KeyType)
	}
	return strings.Join(parts, ", ")
}

func tableKeySchema() []types.KeySchemaElement { return keySchema(model.AttrPK, model.AttrSK) }

func indexKeySchema() []types.KeySchemaElement {
	return keySchema(model.AttrIndexPK, model.AttrIndexSK)
}

func keySchema(pk, sk string) []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: aws.String(pk), KeyType: types.KeyTypeHash},
		{AttributeName: aws.String(sk), KeyType: types.KeyTypeRange},
	}
}
