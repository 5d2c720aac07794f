package dynamo

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/dynamo/model"
)

// SizeOf returns the size of a record in bytes.
func SizeOf(r map[string]types.AttributeValue) int { return model.SizeOf(r) }

// LargestSize returns the maximum size of an entity's records in bytes.
func (b CostBounds) LargestSize(entity string) int { return b.sizes[entity] }
