package units

import "context"

// WriteMeter adds up the write units of transactions. It is not safe for concurrent use.
type WriteMeter struct{ Units float64 }

type writeMeterKey struct{}

// NewContext returns a context that adds the write units of its transactions to w.
func (w *WriteMeter) NewContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, writeMeterKey{}, w)
}

// AddWrite adds the write units of a transaction to the WriteMeter of the context. It does
// nothing if the context has no WriteMeter. A cancelled transaction also consumes write units.
func AddWrite(ctx context.Context, units float64) {
	if w, ok := ctx.Value(writeMeterKey{}).(*WriteMeter); ok {
		w.Units += units
	}
}
