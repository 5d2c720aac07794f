package schema

import (
	"time"

	"github.com/ordergraph/ordergraph/embedded/internal/wire"
)

// CreateTableInput contains the parameters of CreateTable.
type CreateTableInput struct {
	TableName                 *string
	AttributeDefinitions      []AttributeDefinition
	KeySchema                 []KeyElement
	GlobalSecondaryIndexes    []IndexDefinition
	LocalSecondaryIndexes     []IndexDefinition
	BillingMode               string
	ProvisionedThroughput     *Throughput
	OnDemandThroughput        *OnDemandLimits
	SSESpecification          *Encryption
	DeletionProtectionEnabled bool
	TableClass                string
	StreamSpecification       *StreamSpecification
}

// Check validates the parameters.
func (in *CreateTableInput) Check() error {
	if in.TableName == nil {
		return wire.Invalid("The parameter 'TableName' is required but was not present in the request")
	}
	v := &wire.Violations{}
	v.CheckName(*in.TableName, "tableName", 3)
	v.CheckEnum(in.BillingMode, "billingMode", provisioned, payPerRequest)
	checkDefinitions(v, in.AttributeDefinitions)
	checkKeyElements(v, in.KeySchema, "keySchema", 2)
	checkIndexes(v, in.GlobalSecondaryIndexes, "globalSecondaryIndexes", 2*maxKeyParts)
	checkIndexes(v, in.LocalSecondaryIndexes, "localSecondaryIndexes", 2)
	if in.StreamSpecification != nil {
		v.CheckEnum(in.StreamSpecification.StreamViewType, "streamSpecification.streamViewType", viewTypes...)
	}
	v.CheckEnum(in.TableClass, "tableClass", "STANDARD", "STANDARD_INFREQUENT_ACCESS")
	if err := v.Err(); err != nil {
		return err
	}
	if err := checkStreamSpecification(in.StreamSpecification, true); err != nil {
		return err
	}
	if in.LocalSecondaryIndexes != nil && len(in.LocalSecondaryIndexes) == 0 {
		return wire.Invalid("One or more parameter values were invalid: List of LocalSecondaryIndexes is empty")
	}
	if in.GlobalSecondaryIndexes != nil && len(in.GlobalSecondaryIndexes) == 0 {
		return wire.Invalid("One or more parameter values were invalid: List of GlobalSecondaryIndexes is empty")
	}
	if len(in.LocalSecondaryIndexes) > 0 {
		if len(in.KeySchema) < 2 {
			return wire.Invalid("One or more parameter values were invalid: Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex")
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

// Definition returns the definition of the new table.
func (in *CreateTableInput) Definition(id string, created time.Time) Definition {
	d := Definition{
		TableName: *in.TableName, TableID: id, AttributeDefinitions: in.AttributeDefinitions, KeySchema: in.KeySchema,
		GlobalSecondaryIndexes: in.GlobalSecondaryIndexes, LocalSecondaryIndexes: in.LocalSecondaryIndexes,
		BillingMode: in.BillingMode, ProvisionedThroughput: in.ProvisionedThroughput,
		OnDemandThroughput: in.OnDemandThroughput, SSESpecification: in.SSESpecification,
		Created: created, DeletionProtectionEnabled: in.DeletionProtectionEnabled, TableClass: in.TableClass,
	}
	if d.BillingMode == "" {
		d.BillingMode = provisioned
	}
	if in.StreamSpecification != nil && in.StreamSpecification.StreamEnabled {
		d.StreamSpecification = in.StreamSpecification
	}
	return d
}
