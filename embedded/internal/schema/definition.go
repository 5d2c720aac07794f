// Package schema contains the definitions of tables and indexes. It validates and changes these
// definitions, describes tables in responses, and encodes the keys of items.
package schema

import (
	"strings"
	"time"
)

// Region is the AWS region in the Amazon Resource Names of tables and streams.
const Region = "local"

// These types occur in DynamoDB's requests and responses. Their fields have the same names as in
// DynamoDB's API.
type (
	// AttributeDefinition is the name and the type of a key attribute.
	AttributeDefinition struct {
		AttributeName, AttributeType string
	}
	// KeyElement is one attribute of a key. KeyType is HASH or RANGE.
	KeyElement struct {
		AttributeName, KeyType string
	}
	// Projection defines which attributes an index contains.
	Projection struct {
		ProjectionType   string   `json:",omitzero"`
		NonKeyAttributes []string `json:",omitzero"`
	}
	// Throughput is the provisioned throughput of a table or an index.
	Throughput struct {
		ReadCapacityUnits, WriteCapacityUnits int64
	}
	// IndexDefinition defines a global or local secondary index.
	IndexDefinition struct {
		IndexName             string
		KeySchema             []KeyElement
		Projection            *Projection
		ProvisionedThroughput *Throughput `json:",omitzero"`
	}
	// StreamSpecification enables or disables a table's stream.
	StreamSpecification struct {
		StreamEnabled  bool
		StreamViewType string `json:",omitzero"`
	}
	// Encryption is a table's encryption setting. DescribeTable returns the setting, but the store
	// does not encrypt its file.
	Encryption struct {
		Enabled bool
	}
	// OnDemandLimits contains the throughput limits of a table in on-demand mode. DescribeTable
	// returns these limits, but the store does not enforce them.
	OnDemandLimits struct {
		MaxReadRequestUnits, MaxWriteRequestUnits int64
	}
)

// Definition is the definition of a table. The store's file contains it as JSON.
type Definition struct {
	TableName                 string
	TableID                   string
	Bucket                    uint64 // Bucket is the number in the name of the table's bucket.
	AttributeDefinitions      []AttributeDefinition
	KeySchema                 []KeyElement
	GlobalSecondaryIndexes    []IndexDefinition
	LocalSecondaryIndexes     []IndexDefinition `json:",omitzero"`
	BillingMode               string
	ProvisionedThroughput     *Throughput
	OnDemandThroughput        *OnDemandLimits `json:",omitzero"`
	SSESpecification          *Encryption     `json:",omitzero"`
	Created                   time.Time
	DeletionProtectionEnabled bool
	TableClass                string
	StreamSpecification       *StreamSpecification
	StreamLabel               string // StreamLabel is the label of the latest stream, or "" if there was no stream.
	Expiry                    string // Expiry is the name of the attribute with the time to live, or "".
}

// ARN returns the table's Amazon Resource Name.
func (d *Definition) ARN() string {
	return "arn:aws:dynamodb:" + Region + ":000000000000:table/" + d.TableName
}

// StreamARN returns the Amazon Resource Name of the table's latest stream.
func (d *Definition) StreamARN() string { return d.ARN() + "/stream/" + d.StreamLabel }

// HasStream reports whether the table has an enabled stream.
func (d *Definition) HasStream() bool { return d.StreamSpecification != nil }

// TableNameFromARN returns the table name that an Amazon Resource Name contains. If name is not an
// Amazon Resource Name, TableNameFromARN returns name unchanged.
func TableNameFromARN(name string) string {
	if strings.HasPrefix(name, "arn:") {
		if _, after, ok := strings.Cut(name, ":table/"); ok {
			return after
		}
	}
	return name
}
