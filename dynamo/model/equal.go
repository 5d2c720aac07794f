package model

import (
	"bytes"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// EqualRecords reports whether two records are equal for DynamoDB. It ignores the order of the
// elements of a set, and the notation of a number.
func EqualRecords(a, b Record) bool { return maps.EqualFunc(a, b, EqualValues) }

// EqualValues reports whether two values are equal for DynamoDB (see EqualRecords).
func EqualValues(a, b types.AttributeValue) bool {
	switch a := a.(type) {
	case *types.AttributeValueMemberS:
		b, ok := b.(*types.AttributeValueMemberS)
		return ok && a.Value == b.Value
	case *types.AttributeValueMemberN:
		b, ok := b.(*types.AttributeValueMemberN)
		return ok && EqualNumbers(a.Value, b.Value)
	case *types.AttributeValueMemberB:
		b, ok := b.(*types.AttributeValueMemberB)
		return ok && bytes.Equal(a.Value, b.Value)
	case *types.AttributeValueMemberBOOL:
		b, ok := b.(*types.AttributeValueMemberBOOL)
		return ok && a.Value == b.Value
	case *types.AttributeValueMemberNULL:
		_, ok := b.(*types.AttributeValueMemberNULL)
		return ok
	case *types.AttributeValueMemberL:
		b, ok := b.(*types.AttributeValueMemberL)
		return ok && slices.EqualFunc(a.Value, b.Value, EqualValues)
	case *types.AttributeValueMemberM:
		b, ok := b.(*types.AttributeValueMemberM)
		return ok && EqualRecords(a.Value, b.Value)
	case *types.AttributeValueMemberSS:
		b, ok := b.(*types.AttributeValueMemberSS)
		return ok && EqualSets(a.Value, b.Value, stringSetKey)
	case *types.AttributeValueMemberNS:
		b, ok := b.(*types.AttributeValueMemberNS)
		return ok && EqualSets(a.Value, b.Value, ParseValidNumber)
	case *types.AttributeValueMemberBS:
		b, ok := b.(*types.AttributeValueMemberBS)
		return ok && EqualSets(a.Value, b.Value, bytesToString)
	}
	return false
}

// EqualNumbers reports whether two numbers have the same value, such as 5 and 5.0.
func EqualNumbers(a, b string) bool { return a == b || ParseValidNumber(a) == ParseValidNumber(b) }

// stringSetKey and bytesToString convert the elements of sets to comparable values, for EqualSets.
func stringSetKey(s string) string { return s }

func bytesToString(b []byte) string { return string(b) }

// ParseValidNumber parses a number of a record. DynamoDB and the import reject invalid numbers, so
// the number is always valid. For an invalid number, ParseValidNumber would return zero.
func ParseValidNumber(n string) Number {
	parsed, _ := ParseNumber(n)
	return parsed
}

// EqualSets reports whether two sets have the same elements. Neither may contain duplicates. key
// converts an element to a comparable value.
func EqualSets[E any, K comparable](a, b []E, key func(E) K) bool {
	return len(a) == len(b) && maps.Equal(setOf(a, key), setOf(b, key))
}

func setOf[E any, K comparable](elements []E, key func(E) K) map[K]bool {
	set := make(map[K]bool, len(elements))
	for _, e := range elements {
		set[key(e)] = true
	}
	return set
}
