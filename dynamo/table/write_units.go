package table

import "context"

// WriteMeter is the sum of the write units of transactions. It is not safe for concurrent use.
type WriteMeter struct{ Units float64 }

type writeMeterKey struct{}

// NewContext returns a context whose transactions add their write units to w.
func (w *WriteMeter) NewContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, writeMeterKey{}, w)
}

// AddWriteUnits adds the write units of a transaction to the Written of the context, if it has one.
// A cancelled transaction costs write units, too.
func AddWriteUnits(ctx context.Context, units float64) {
	if w, ok := ctx.Value(writeMeterKey{}).(*WriteMeter); ok {
		w.Units += units
	}
}
