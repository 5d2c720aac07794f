package paging

import "testing"

// BenchmarkCursors measures creating and verifying a cursor.
func BenchmarkCursors(b *testing.B) {
	list := NewCursorSigner([]byte("a key for tests")).ScopeOfList("customer.orders", "cust_01")
	const position = "2026-01-02T03:04:05Z#01KNVV2HR00000000000000101"
	b.Run("seal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			list.Encode(position)
		}
	})
	cursor := list.Encode(position)
	b.Run("open", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if got, err := list.Decode(cursor); got != position {
				b.Fatal(got, err)
			}
		}
	})
}
