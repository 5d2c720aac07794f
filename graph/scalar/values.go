package scalar

import "math"

// ToInt converts a count to GraphQL's type Int. If the count exceeds the range, the result is the
// largest Int. The error is returned unchanged.
func ToInt(n int, err error) (int32, error) { return int32(min(n, math.MaxInt32)), err }

// OrNull returns a pointer to v, or nil if v is the zero value.
func OrNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
