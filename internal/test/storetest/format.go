package storetest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// FormatValue formats an attribute value for test failures and golden files. Like DynamoDB, it
// removes the zeros at the end of a decimal fraction: the number 1.50 becomes 1.5.
func FormatValue(v types.AttributeValue) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		if strings.Contains(v.Value, ".") {
			return strings.TrimSuffix(strings.TrimRight(v.Value, "0"), ".")
		}
		return v.Value
	case *types.AttributeValueMemberBOOL:
		return strconv.FormatBool(v.Value)
	case *types.AttributeValueMemberL:
		texts := make([]string, len(v.Value))
		for i, e := range v.Value {
			texts[i] = FormatValue(e)
		}
		return "[" + strings.Join(texts, ", ") + "]"
	case *types.AttributeValueMemberM:
		return Record(v.Value).String()
	default:
		return fmt.Sprintf("%+v", v)
	}
}

// String formats a record, with its attributes sorted by name. It formats each value with
// FormatValue, and omits empty lists.
func (r Record) String() string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(r)) {
		if l, ok := r[name].(*types.AttributeValueMemberL); !ok || len(l.Value) > 0 {
			texts = append(texts, name+"="+FormatValue(r[name]))
		}
	}
	return "{" + strings.Join(texts, " ") + "}"
}
