package bulk_test

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ordergraph/ordergraph/internal/storetest"
)

type item = storetest.Item

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func key(pk, sk string) item { return storetest.ItemKey(pk, sk) }
