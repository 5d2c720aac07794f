package dynamo

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// SizeOf is SizeOf for tests that read the table.
func SizeOf(r map[string]types.AttributeValue) int { return model.SizeOf(r) }

// LargestSize is how large records of an entity can be.
func (b Bounds) LargestSize(entity string) int { return b.sizes[entity] }
