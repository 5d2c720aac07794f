package dynamo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/dynamo/table"
)

// CreateTable makes the table, its index and its stream, paid by request, waits until it can be
// used, and lets DynamoDB delete idempotency records that have expired.
//
// Errors: ErrTableExists, ErrUnavailable, ErrAccessDenied.
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
		StreamSpecification:  wantedStream(),
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName:  aws.String(model.IndexName),
			KeySchema:  indexKeySchema(),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}},
	})
	if err != nil {
		return table.Failed("CreateTable", s.table.Name, err)
	}
	// Only Amazon's takes its time; the local engines answer when the table is there.
	if out.TableDescription.TableStatus == types.TableStatusCreating {
		if err := s.waitForTable(ctx); err != nil {
			return table.Failed("CreateTable", s.table.Name, err)
		}
	}
	return s.EnableExpiry(ctx)
}

// waitForTable waits until the table can be used.
func (s *Store) waitForTable(ctx context.Context) error {
	return dynamodb.NewTableExistsWaiter(s.table.Client).Wait(ctx, &dynamodb.DescribeTableInput{TableName: &s.table.Name}, 5*time.Minute)
}

// wantedStream is the setting of a stream by which changes can be followed.
func wantedStream() *types.StreamSpecification {
	return &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewType(table.WantedView)}
}

// EnableStream lets DynamoDB keep a stream of the table's changes, of the records as they were and
// as they are. It does nothing where that is so already.
//
// Errors: ErrOtherStream where there is one of another kind, ErrNoTable, ErrUnavailable,
// ErrAccessDenied.
func (s *Store) EnableStream(ctx context.Context) error {
	is, err := s.table.Stream(ctx)
	if err != nil || is.View == table.WantedView {
		return err
	}
	if is.View != "" {
		return fmt.Errorf("%w: it has a stream of %s, and subscriptions need one of %s", table.ErrOtherStream, is.View, table.WantedView)
	}
	out, err := s.table.Client.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: &s.table.Name, StreamSpecification: wantedStream()})
	if err != nil {
		return table.Failed("UpdateTable", s.table.Name, err)
	}
	if d := out.TableDescription; d != nil && d.TableStatus == types.TableStatusUpdating {
		if err := s.waitForTable(ctx); err != nil {
			return table.Failed("UpdateTable", s.table.Name, err)
		}
	}
	return nil
}

// EnableExpiry lets DynamoDB delete idempotency records that have expired. It does nothing where
// that is so already.
//
// Errors: ErrNoTable, ErrUnavailable, ErrAccessDenied.
func (s *Store) EnableExpiry(ctx context.Context) error {
	on, err := s.expires(ctx)
	if err != nil || on {
		return err
	}
	_, err = s.table.Client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               &s.table.Name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(model.AttrExpiresAt), Enabled: aws.Bool(true)},
	})
	if err != nil {
		return table.Failed("UpdateTimeToLive", s.table.Name, err)
	}
	return nil
}

// expires reports whether DynamoDB deletes records that have expired.
func (s *Store) expires(ctx context.Context) (bool, error) {
	out, err := s.table.Client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &s.table.Name})
	if err != nil {
		return false, table.Failed("DescribeTimeToLive", s.table.Name, err)
	}
	d := out.TimeToLiveDescription
	if d == nil || aws.ToString(d.AttributeName) != model.AttrExpiresAt {
		return false, nil
	}
	return d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling, nil
}

// TableDescription is what a table is like, beside the model.
type TableDescription struct {
	// Name and Status are DynamoDB's: ACTIVE is ready.
	Name, Status string
	// Records and Bytes are DynamoDB's estimates, some hours old.
	Records, Bytes int64
	// Differences are the ways in which its keys and its index do not fit the model, none where
	// they do.
	Differences []string
	// Misplaced tells that its records were written with another number of shards, nil where they
	// were not, or where Differences kept it from being found out.
	Misplaced *table.ShardsError
	// Expires reports whether DynamoDB deletes idempotency records that have expired. Nothing else
	// depends on it.
	Expires bool
	// Followable is nil where changes can be followed, else ErrNoStream with what is missing. Only
	// subscriptions depend on it.
	Followable error
}

// Mismatch is nil where the table can be used.
//
// Errors: ErrTableMismatch, as ShardsError where it is about the number of shards.
func (d TableDescription) Mismatch() error {
	if len(d.Differences) > 0 {
		return fmt.Errorf("%w: %s", table.ErrTableMismatch, strings.Join(d.Differences, "; "))
	}
	if d.Misplaced != nil {
		return d.Misplaced
	}
	return nil
}

// DescribeTable compares the table with the model, and its records with the number of shards: a
// wrong number would look like an empty shop.
//
// Errors: ErrNoTable, ErrUnavailable, ErrAccessDenied.
func (s *Store) DescribeTable(ctx context.Context) (TableDescription, error) {
	d, err := s.compareTable(ctx)
	if err != nil {
		return d, err
	}
	d.Expires, err = s.expires(ctx)
	return d, err
}

// compareTable is DescribeTable but for what serving does not need.
func (s *Store) compareTable(ctx context.Context) (TableDescription, error) {
	out, err := s.table.Client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &s.table.Name})
	if err != nil {
		return TableDescription{}, table.Failed("DescribeTable", s.table.Name, err)
	}
	t := out.Table
	d := TableDescription{Name: s.table.Name, Status: string(t.TableStatus), Records: aws.ToInt64(t.ItemCount), Bytes: aws.ToInt64(t.TableSizeBytes), Followable: table.StreamOf(t).Missing()}
	differ := func(what, want, have string) {
		if want != have {
			d.Differences = append(d.Differences, fmt.Sprintf("%s: %s is wanted, the table has %s", what, want, have))
		}
	}
	differ("key", schemaText(tableKeySchema()), schemaText(t.KeySchema))
	found := false
	for _, index := range t.GlobalSecondaryIndexes {
		if aws.ToString(index.IndexName) != model.IndexName {
			continue
		}
		found = true
		differ("index "+model.IndexName+" key", schemaText(indexKeySchema()), schemaText(index.KeySchema))
		if index.Projection != nil {
			differ("index "+model.IndexName+" projection", string(types.ProjectionTypeAll), string(index.Projection.ProjectionType))
		}
	}
	if !found {
		differ("index "+model.IndexName, schemaText(indexKeySchema()), "no such index")
	}
	for _, a := range t.AttributeDefinitions {
		switch name := aws.ToString(a.AttributeName); name {
		case model.AttrPK, model.AttrSK, model.AttrIndexPK, model.AttrIndexSK:
			differ("type of "+name, string(types.ScalarAttributeTypeS), string(a.AttributeType))
		}
	}
	if len(d.Differences) == 0 {
		keys, err := s.misplaced(ctx)
		if err != nil {
			return TableDescription{}, err
		}
		if len(keys) > 0 {
			d.Misplaced = &table.ShardsError{Shards: s.table.Shards, Keys: keys}
		}
	}
	return d, nil
}

// misplaced are index keys under which records stand that no list would find, because they were
// written for another number of shards than the store reads: under the bare key of a table of one
// shard, or behind the last shard. It reads one record of each such key.
func (s *Store) misplaced(ctx context.Context) ([]string, error) {
	var elsewhere []string
	add := func(base string) {
		if s.table.Shards > 1 {
			elsewhere = append(elsewhere, base+model.ShardSuffix(0, 1), base+model.ShardSuffix(s.table.Shards, model.MaxShards))
			return
		}
		elsewhere = append(elsewhere, base+model.ShardSuffix(0, model.MaxShards))
	}
	add(string(model.EntityCustomer.IndexPK))
	add(string(model.EntityEmployee.IndexPK))
	for _, status := range commerce.Statuses() {
		key, err := model.EntityOrder.IndexPK.Key(status.String())
		if err != nil {
			return nil, err
		}
		add(key)
	}
	found := make([]bool, len(elsewhere))
	err := table.Parallel(ctx, len(elsewhere), table.MaxParallel, func(ctx context.Context, i int) error {
		records, _, err := s.table.Query(ctx, &model.Orders.AccessPattern, elsewhere[i], "", model.Range{}, 1, true)
		found[i] = len(records) > 0
		return err
	})
	if err != nil {
		return nil, err
	}
	var keys []string
	for i, key := range elsewhere {
		if found[i] {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// Check reports whether the table can be used.
//
// Errors: ErrTableMismatch, and those of DescribeTable.
func (s *Store) Check(ctx context.Context) error {
	d, err := s.compareTable(ctx)
	if err != nil {
		return err
	}
	return d.Mismatch()
}

// CheckStream reports whether changes of the table can be followed.
//
// Errors: ErrNoStream, and those of DescribeTable.
func (s *Store) CheckStream(ctx context.Context) error {
	is, err := s.table.Stream(ctx)
	if err != nil {
		return err
	}
	return is.Missing()
}

func schemaText(schema []types.KeySchemaElement) string {
	parts := make([]string, len(schema))
	for i, k := range schema {
		parts[i] = fmt.Sprintf("%s (%s)", aws.ToString(k.AttributeName), k.KeyType)
	}
	return strings.Join(parts, ", ")
}

// tableKeySchema is the key schema of the table.
func tableKeySchema() []types.KeySchemaElement { return keySchema(model.AttrPK, model.AttrSK) }

// indexKeySchema is the key schema of the index.
func indexKeySchema() []types.KeySchemaElement {
	return keySchema(model.AttrIndexPK, model.AttrIndexSK)
}

func keySchema(pk, sk string) []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: aws.String(pk), KeyType: types.KeyTypeHash},
		{AttributeName: aws.String(sk), KeyType: types.KeyTypeRange},
	}
}
