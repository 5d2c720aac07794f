package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ordergraph/ordergraph/embedded/internal/wire"
)

// The values of BillingMode.
const (
	payPerRequest = "PAY_PER_REQUEST"
	provisioned   = "PROVISIONED"
)

// viewTypes are the values of StreamViewType.
var viewTypes = []string{"NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES", "KEYS_ONLY"}

// maxKeyParts is the maximum number of attributes in the partition key of a global secondary index.
// It is also the maximum number of attributes in the sort key.
//
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.DesignPattern.MultiAttributeKeys.html
const maxKeyParts = 4

// checkIndexes validates the definitions of indexes. The parameter list is the name of the request
// parameter with the definitions, for error messages. The parameter most is the maximum number of
// attributes in an index key.
func checkIndexes(v *wire.Violations, indexes []IndexDefinition, list string, most int) {
	for i, d := range indexes {
		checkIndex(v, d, fmt.Sprintf("%s.%d.member.", list, i+1), most)
	}
}

// checkIndex validates the definition of one index. prefix precedes the name of a parameter in
// error messages.
func checkIndex(v *wire.Violations, d IndexDefinition, prefix string, most int) {
	v.CheckName(d.IndexName, prefix+"indexName", 3)
	checkKeyElements(v, d.KeySchema, prefix+"keySchema", most)
	checkProjectionMembers(v, d.Projection, prefix+"projection")
}

// checkDefinitions validates each element of AttributeDefinitions.
func checkDefinitions(v *wire.Violations, definitions []AttributeDefinition) {
	for i, d := range definitions {
		field := fmt.Sprintf("attributeDefinitions.%d.member.", i+1)
		v.CheckLength(d.AttributeName, field+"attributeName", 1)
		v.CheckEnum(d.AttributeType, field+"attributeType", "B", "N", "S")
	}
}

// formatKeySchema returns a key schema in the notation of DynamoDB's error messages.
func formatKeySchema(schema []KeyElement) string {
	parts := make([]string, len(schema))
	for i, e := range schema {
		parts[i] = fmt.Sprintf("KeySchemaElement(attributeName=%s, keyType=%s)", e.AttributeName, e.KeyType)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// checkKeyElements validates the length of a key schema, and each of its elements. field is the
// parameter name in error messages.
func checkKeyElements(v *wire.Violations, schema []KeyElement, field string, most int) {
	if !v.CheckListLength(len(schema), most, field, func() string { return formatKeySchema(schema) }) {
		return
	}
	for i, e := range schema {
		element := fmt.Sprintf("%s.%d.member.", field, i+1)
		v.CheckLength(e.AttributeName, element+"attributeName", 1)
		v.CheckEnum(e.KeyType, element+"keyType", "HASH", "RANGE")
	}
}

// checkProjectionMembers validates the members of an index's projection. field is the parameter
// name in error messages.
func checkProjectionMembers(v *wire.Violations, p *Projection, field string) {
	if p == nil {
		v.AddMissing(field)
		return
	}
	v.CheckEnum(p.ProjectionType, field+".projectionType", "ALL", "INCLUDE", "KEYS_ONLY")
	for i, name := range p.NonKeyAttributes {
		v.CheckLength(name, fmt.Sprintf("%s.nonKeyAttributes.%d.member", field, i+1), 1)
	}
}

// checkBilling verifies that the provisioned throughput of a table and its indexes fits the billing
// mode.
func checkBilling(mode string, p *Throughput, indexes []IndexDefinition) error {
	if mode == payPerRequest {
		if p != nil && (p.ReadCapacityUnits != 0 || p.WriteCapacityUnits != 0) {
			return wire.Invalid("One or more parameter values were invalid: Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST")
		}
		return nil
	}
	if p == nil {
		return wire.Invalid("One or more parameter values were invalid: ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED")
	}
	for _, d := range indexes {
		if d.ProvisionedThroughput == nil {
			return wire.Invalid("One or more parameter values were invalid: ProvisionedThroughput must be specified for index: %s", d.IndexName)
		}
	}
	for _, u := range []struct {
		name  string
		units int64
	}{{"readCapacityUnits", p.ReadCapacityUnits}, {"writeCapacityUnits", p.WriteCapacityUnits}} {
		if u.units < 1 {
			return wire.Invalid("1 validation error detected: Value '%d' at 'provisionedThroughput.%s' failed to satisfy constraint: Member must have value greater than or equal to 1", u.units, u.name)
		}
	}
	return nil
}

// checkSchemas validates the keys of a table and its indexes. definitions must define every key
// attribute, and no other attributes.
func checkSchemas(definitions []AttributeDefinition, key []KeyElement, global, local []IndexDefinition) error {
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
			return wire.Invalid("One or more parameter values were invalid: Duplicate index name: %s", d.IndexName)
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
		return wire.Invalid("One or more parameter values were invalid: LocalSecondaryIndex count exceeds the per-table limit of 5")
	}
	if len(global) > 20 {
		return wire.Invalid("One or more parameter values were invalid: GlobalSecondaryIndex count exceeds the per-table limit of 20")
	}
	defined := map[string]bool{}
	for _, d := range definitions {
		if defined[d.AttributeName] {
			return wire.Invalid("One or more parameter values were invalid: Duplicate AttributeName in AttributeDefinitions: %s", d.AttributeName)
		}
		defined[d.AttributeName] = true
	}
	if len(defined) > len(used) {
		return wire.Invalid("One or more parameter values were invalid: Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions")
	}
	return nil
}

// checkSchema validates the key schema of a table or an index. For a table, the parameter named of
// is "". For an index, it is "for index NAME".
func checkSchema(of string, definitions []AttributeDefinition, key []KeyElement) error {
	if key[0].KeyType != "HASH" {
		return wire.Invalid("Invalid KeySchema: The first KeySchemaElement is not a HASH key type")
	}
	if of == "" && len(key) == 2 && key[1].KeyType != "RANGE" {
		return wire.Invalid("Invalid KeySchema: The second KeySchemaElement is not a RANGE key type")
	}
	names, parts := map[string]bool{}, map[string]int{}
	for i, e := range key {
		if parts[e.KeyType]++; parts[e.KeyType] > maxKeyParts || i > 0 && e.KeyType == "HASH" && key[i-1].KeyType == "RANGE" {
			return wire.Invalid("Invalid KeySchema: A key has at most %d HASH key types, and then at most %d RANGE key types", maxKeyParts, maxKeyParts)
		}
		if names[e.AttributeName] && of != "" {
			return wire.Invalid("Both the Hash Key and the Range Key element in the KeySchema have the same name")
		}
		if names[e.AttributeName] {
			return wire.Invalid("Invalid KeySchema: Some index key attribute have no definition")
		}
		names[e.AttributeName] = true
	}
	for _, e := range key {
		if !slices.ContainsFunc(definitions, func(d AttributeDefinition) bool { return d.AttributeName == e.AttributeName }) {
			var names []string
			for _, d := range definitions {
				names = append(names, d.AttributeName)
			}
			var keys []string
			for _, e := range key {
				keys = append(keys, e.AttributeName)
			}
			if of != "" {
				return wire.Invalid("One or more parameter values were invalid: Some index key attributes are not defined in AttributeDefinitions. Keys: [%s], AttributeDefinitions: [%s]", strings.Join(keys, ", "), strings.Join(names, ", "))
			}
			return wire.Invalid("Invalid KeySchema: Some index key attribute have no definition")
		}
	}
	return nil
}

// checkLocalSchema validates the key schema of a local secondary index. partition is the attribute
// name of the table's partition key.
func checkLocalSchema(d IndexDefinition, partition string) error {
	switch hash := d.KeySchema[0].AttributeName; {
	case len(d.KeySchema) < 2:
		return wire.Invalid("One or more parameter values were invalid: Index KeySchema does not have a range key for index: %s", d.IndexName)
	case d.KeySchema[1].KeyType != "RANGE":
		return wire.Invalid("Invalid KeySchema: The second KeySchemaElement is not a RANGE key type")
	case hash != partition:
		return wire.Invalid("One or more parameter values were invalid: Index KeySchema does not have the same leading hash key as table KeySchema for index: %s. index hash key: %s, table hash key: %s", d.IndexName, hash, partition)
	}
	return nil
}

// checkProjection validates an index's projection.
func checkProjection(p *Projection) error {
	switch {
	case p.ProjectionType == "":
		return wire.Invalid("One or more parameter values were invalid: Unknown ProjectionType: null")
	case p.ProjectionType == "INCLUDE" && len(p.NonKeyAttributes) == 0:
		return wire.Invalid("One or more parameter values were invalid: ProjectionType is INCLUDE, but NonKeyAttributes is not specified")
	case p.ProjectionType != "INCLUDE" && len(p.NonKeyAttributes) > 0:
		return wire.Invalid("One or more parameter values were invalid: ProjectionType is %s, but NonKeyAttributes is specified", p.ProjectionType)
	}
	return nil
}

// checkStreamSpecification validates a StreamSpecification, which may be nil. If the request
// creates the table, isNew must be true: DynamoDB then uses another error message.
func checkStreamSpecification(set *StreamSpecification, isNew bool) error {
	switch {
	case set == nil:
	case set.StreamEnabled && set.StreamViewType == "":
		return wire.Invalid("One or more parameter values were invalid: StreamViewType is required when StreamEnabled is true")
	case !set.StreamEnabled && set.StreamViewType != "" && isNew:
		return wire.Invalid("One or more parameter values were invalid: Table is being created with a stream disabled, UpdateViewType should not be specified")
	case !set.StreamEnabled && set.StreamViewType != "":
		return wire.Invalid("One or more parameter values were invalid: Table is being disabled for streams. StreamViewType should not be specified")
	}
	return nil
}
