package scalar

import "math"

// ToInt converts a count to GraphQL's Int. A count that exceeds the range becomes the largest Int.
func ToInt(n int, err error) (int32, error) { return int32(min(n, math.MaxInt32)), err }

// CountOrNull is like Count, but the count can be nil.
func CountOrNull(n *int, err error) (*int32, error) {
	if n == nil {
		return nil, err
	}
	count, err := ToInt(*n, err)
	return &count, err
}

// OrNull returns a pointer to v, or nil if v is the zero value.
func OrNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
