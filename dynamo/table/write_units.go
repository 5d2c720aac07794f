package table

import "context"

// Written is the sum of the write units of transactions. It is not safe for concurrent use.
type Written struct{ Units float64 }

type writeMeterKey struct{}

// On returns a context whose transactions add their write units to w.
func (w *Written) On(ctx context.Context) context.Context {
	return context.WithValue(ctx, writeMeterKey{}, w)
}

// Wrote adds the write units of a transaction to the Written of the context, if it has one. A
// cancelled transaction costs write units, too.
func Wrote(ctx context.Context, units float64) {
	if w, ok := ctx.Value(writeMeterKey{}).(*Written); ok {
		w.Units += units
	}
}
