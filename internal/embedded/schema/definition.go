// Package schema contains the definitions of tables and indexes. It validates and changes
// definitions, describes them in responses, and encodes the keys of items.
package schema

import (
	"strings"
	"time"
)

// Region is the region in the Amazon Resource Names of tables and streams.
const Region = "local"

// These types are parts of DynamoDB's requests and responses. The fields have the same names as in
// the API.
type (
	// AttributeDefinition is the type of a key's attribute.
	AttributeDefinition struct {
		AttributeName, AttributeType string
	}
	// KeyElement is an attribute of a key. KeyType is HASH or RANGE.
	KeyElement struct {
		AttributeName, KeyType string
	}
	// Projection has the attributes that an index contains.
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
	// Encryption is a table's encryption setting. DescribeTable returns it, but the file is not
	// encrypted.
	Encryption struct {
		Enabled bool
	}
	// OnDemandLimits contains the throughput limits of a table in on-demand mode. DescribeTable returns
	// them, but the store does not enforce them.
	OnDemandLimits struct {
		MaxReadRequestUnits, MaxWriteRequestUnits int64
	}
)

// Definition is the definition of a table. The file contains it as JSON.
type Definition struct {
	TableName                 string
	TableID                   string
	Bucket                    uint64 // Bucket is the number of the table's bucket.
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
	StreamLabel               string // StreamLabel names the latest stream, "" without any.
	Expiry                    string // Expiry is the attribute with the time to live, or "".
}

// ARN returns the table's Amazon Resource Name.
func (d *Definition) ARN() string {
	return "arn:aws:dynamodb:" + Region + ":000000000000:table/" + d.TableName
}

// StreamARN returns the Amazon Resource Name of the table's latest stream.
func (d *Definition) StreamARN() string { return d.ARN() + "/stream/" + d.StreamLabel }

// HasStream reports whether the table's changes are recorded.
func (d *Definition) HasStream() bool { return d.StreamSpecification != nil }

// TableNameFromARN returns the table name in an Amazon Resource Name. It returns any other name unchanged.
func TableNameFromARN(name string) string {
	if strings.HasPrefix(name, "arn:") {
		if _, after, ok := strings.Cut(name, ":table/"); ok {
			return after
		}
	}
	return name
}
