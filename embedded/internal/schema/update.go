package schema

import (
	"fmt"
	"slices"

	"github.com/ordergraph/ordergraph/embedded/internal/wire"
)

// UpdateTableInput contains the parameters of UpdateTable.
type UpdateTableInput struct {
	TableName                   *string
	AttributeDefinitions        []AttributeDefinition
	BillingMode                 string
	ProvisionedThroughput       *Throughput
	OnDemandThroughput          *OnDemandLimits
	SSESpecification            *Encryption
	DeletionProtectionEnabled   *bool
	TableClass                  string
	StreamSpecification         *StreamSpecification
	GlobalSecondaryIndexUpdates []struct {
		Create *IndexDefinition
		Update *struct {
			IndexName             string
			ProvisionedThroughput *Throughput
		}
		Delete *struct{ IndexName string }
	}
}

// Check validates the parameters. It makes only the checks that do not need the table's definition.
func (in *UpdateTableInput) Check() error {
	v := &wire.Violations{}
	v.CheckTableName(in.TableName)
	v.CheckEnum(in.BillingMode, "billingMode", provisioned, payPerRequest)
	checkDefinitions(v, in.AttributeDefinitions)
	for i, u := range in.GlobalSecondaryIndexUpdates {
		prefix := fmt.Sprintf("globalSecondaryIndexUpdates.%d.member.", i+1)
		switch {
		case u.Create != nil:
			checkIndex(v, *u.Create, prefix+"create.", 2*maxKeyParts)
		case u.Update != nil:
			v.CheckName(u.Update.IndexName, prefix+"update.indexName", 3)
		case u.Delete != nil:
			v.CheckName(u.Delete.IndexName, prefix+"delete.indexName", 3)
		}
	}
	if in.StreamSpecification != nil {
		v.CheckEnum(in.StreamSpecification.StreamViewType, "streamSpecification.streamViewType", viewTypes...)
	}
	if err := v.Err(); err != nil {
		return err
	}
	if in.BillingMode == "" && in.ProvisionedThroughput == nil && in.OnDemandThroughput == nil && in.SSESpecification == nil && in.DeletionProtectionEnabled == nil && in.TableClass == "" && in.StreamSpecification == nil && len(in.GlobalSecondaryIndexUpdates) == 0 {
		return wire.Invalid("At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates or SSESpecification or ReplicaUpdates is required")
	}
	return checkStreamSpecification(in.StreamSpecification, false)
}

// Apply makes the requested changes in the definition of a table. If a change is invalid, Apply
// returns an error.
func (in *UpdateTableInput) Apply(d *Definition) error {
	if in.BillingMode != "" {
		d.BillingMode = in.BillingMode
		if in.BillingMode == payPerRequest {
			d.ProvisionedThroughput = nil
		}
	}
	if in.ProvisionedThroughput != nil || in.BillingMode == provisioned && d.ProvisionedThroughput == nil {
		if err := checkBilling(d.BillingMode, in.ProvisionedThroughput, nil); err != nil {
			return err
		}
		if old, set := d.ProvisionedThroughput, in.ProvisionedThroughput; old != nil && *old == *set {
			return wire.Invalid("The provisioned throughput for the table will not change. The requested value equals the current value. Current ReadCapacityUnits provisioned for the table: %d. Requested ReadCapacityUnits: %d. Current WriteCapacityUnits provisioned for the table: %d. Requested WriteCapacityUnits: %d. Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits.",
				old.ReadCapacityUnits, set.ReadCapacityUnits, old.WriteCapacityUnits, set.WriteCapacityUnits)
		}
		d.ProvisionedThroughput = in.ProvisionedThroughput
	}
	if in.OnDemandThroughput != nil {
		d.OnDemandThroughput = in.OnDemandThroughput
	}
	if in.SSESpecification != nil {
		d.SSESpecification = in.SSESpecification
	}
	if in.DeletionProtectionEnabled != nil {
		d.DeletionProtectionEnabled = *in.DeletionProtectionEnabled
	}
	if in.TableClass != "" {
		d.TableClass = in.TableClass
	}
	if set := in.StreamSpecification; set != nil {
		if set.StreamEnabled == d.HasStream() {
			if set.StreamEnabled {
				return wire.Invalid("Table already has an enabled stream: TableName: %s", d.TableName)
			}
			return wire.Invalid("Table is already disabled for streams: TableName: %s", d.TableName)
		}
		if d.StreamSpecification = set; !set.StreamEnabled {
			d.StreamSpecification = nil
		}
	}
	return in.applyIndexes(d)
}

// applyIndexes adds, changes and deletes global secondary indexes in the definition of a table.
// DynamoDB does not allow changes to local secondary indexes.
func (in *UpdateTableInput) applyIndexes(d *Definition) error {
	d.GlobalSecondaryIndexes = slices.Clone(d.GlobalSecondaryIndexes)
	at := func(name string) int {
		return slices.IndexFunc(d.GlobalSecondaryIndexes, func(x IndexDefinition) bool { return x.IndexName == name })
	}
	isLocal := func(name string) bool {
		return slices.ContainsFunc(d.LocalSecondaryIndexes, func(x IndexDefinition) bool { return x.IndexName == name })
	}
	for _, u := range in.GlobalSecondaryIndexUpdates {
		switch {
		case u.Create != nil:
			if at(u.Create.IndexName) >= 0 || isLocal(u.Create.IndexName) {
				return wire.Invalid("Attempting to create an index which already exists")
			}
			// The request must define all attributes of the new key, even if the table already defines them.
			if err := checkSchema("for index "+u.Create.IndexName, in.AttributeDefinitions, u.Create.KeySchema); err != nil {
				return err
			}
			for _, x := range in.AttributeDefinitions {
				if !slices.Contains(d.AttributeDefinitions, x) {
					d.AttributeDefinitions = append(slices.Clone(d.AttributeDefinitions), x)
				}
			}
			d.GlobalSecondaryIndexes = append(d.GlobalSecondaryIndexes, *u.Create)
		case u.Delete != nil:
			if isLocal(u.Delete.IndexName) {
				return wire.Invalid("Cannot delete an index that is not a GlobalSecondaryIndex")
			}
			i := at(u.Delete.IndexName)
			if i < 0 {
				return wire.NotFound()
			}
			d.GlobalSecondaryIndexes = slices.Delete(d.GlobalSecondaryIndexes, i, i+1)
			d.dropUnusedDefinitions()
		case u.Update != nil:
			i := at(u.Update.IndexName)
			if i < 0 {
				return wire.NotFound()
			}
			d.GlobalSecondaryIndexes[i].ProvisionedThroughput = u.Update.ProvisionedThroughput
		}
	}
	return checkSchemas(d.AttributeDefinitions, d.KeySchema, d.GlobalSecondaryIndexes, d.LocalSecondaryIndexes)
}

// dropUnusedDefinitions removes the definitions of attributes that no key uses.
func (d *Definition) dropUnusedDefinitions() {
	used := map[string]bool{}
	for _, e := range d.KeySchema {
		used[e.AttributeName] = true
	}
	for _, x := range slices.Concat(d.GlobalSecondaryIndexes, d.LocalSecondaryIndexes) {
		for _, e := range x.KeySchema {
			used[e.AttributeName] = true
		}
	}
	d.AttributeDefinitions = slices.DeleteFunc(slices.Clone(d.AttributeDefinitions), func(x AttributeDefinition) bool { return !used[x.AttributeName] })
}
