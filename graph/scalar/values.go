package scalar

import "math"

// Count makes GraphQL's Int of a count.
func Count(n int, err error) (int32, error) { return int32(min(n, math.MaxInt32)), err }

// CountOrNull makes GraphQL's Int of a count, and null of nil.
func CountOrNull(n *int, err error) (*int32, error) {
	if n == nil {
		return nil, err
	}
	count, err := Count(*n, err)
	return &count, err
}

// OrNull makes GraphQL's null of no text and no status.
func OrNull[T comparable](v T) *T {
	var none T
	if v == none {
		return nil
	}
	return &v
}
