package model

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// SizeOfAll returns the total size of records in bytes, as DynamoDB calculates it.
func SizeOfAll(records []Reader) int {
	bytes := 0
	for _, r := range records {
		bytes += r.Size()
	}
	return bytes
}

// SizeOf returns the size of a record in bytes, with attribute names, as DynamoDB calculates it.
func SizeOf(r Record) int {
	bytes := 0
	for name, v := range r {
		bytes += len(name) + sizeOfValue(v)
	}
	return bytes
}

func sizeOfValue(v types.AttributeValue) int {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return sizeOfNumber(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberBOOL, *types.AttributeValueMemberNULL:
		return 1
	case *types.AttributeValueMemberSS:
		bytes := 0
		for _, s := range v.Value {
			bytes += len(s)
		}
		return bytes
	case *types.AttributeValueMemberNS:
		bytes := 0
		for _, n := range v.Value {
			bytes += sizeOfNumber(n)
		}
		return bytes
	case *types.AttributeValueMemberBS:
		bytes := 0
		for _, b := range v.Value {
			bytes += len(b)
		}
		return bytes
	case *types.AttributeValueMemberL:
		// A list or map takes 3 bytes, plus 1 byte for each element.
		bytes := 3
		for _, e := range v.Value {
			bytes += 1 + sizeOfValue(e)
		}
		return bytes
	case *types.AttributeValueMemberM:
		bytes := 3
		for name, e := range v.Value {
			bytes += 1 + len(name) + sizeOfValue(e)
		}
		return bytes
	}
	return 0
}

// sizeOfNumber returns the approximate size of a number in bytes. DynamoDB uses one byte for every
// two significant digits, plus one byte. A negative number takes one more byte.
func sizeOfNumber(n string) int {
	digits, significant := 0, 0
	for i := range len(n) {
		switch c := n[i]; {
		case c == '-' || c == '.' || c == '0' && digits == 0:
		case c == '0':
			digits++
		default:
			digits++
			significant = digits
		}
	}
	size := (significant+1)/2 + 1
	if strings.HasPrefix(n, "-") {
		size++
	}
	return size
}
