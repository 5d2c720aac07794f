package table

import "context"

// Written adds up the write units of transactions. It is for one goroutine.
type Written struct{ Units float64 }

type writtenKey struct{}

// On returns a context whose transactions are added up.
func (w *Written) On(ctx context.Context) context.Context {
	return context.WithValue(ctx, writtenKey{}, w)
}

// Wrote adds the write units of a transaction that was made, or cancelled, to those of the context.
func Wrote(ctx context.Context, units float64) {
	if w, ok := ctx.Value(writtenKey{}).(*Written); ok {
		w.Units += units
	}
}
