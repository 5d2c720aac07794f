package scalar

import "math"

// ToInt converts a count to GraphQL's type Int. If the count exceeds the range, the result is the
// largest Int. The error is returned unchanged.
func ToInt(n int, err error) (int32, error) { return int32(min(n, math.MaxInt32)), err }

// CountOrNull is like ToInt, but the count can be nil. In this case, the result is nil.
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
