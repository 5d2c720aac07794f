package cli

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/ordergraph/ordergraph/dynamo"
)

// expireCommand cancels the orders that have expired, once.
func expireCommand(ctx context.Context, args []string, env Environment) error {
	if err := parseArgs("expire", args, 0, nil, nil); err != nil {
		return err
	}
	store, cfg, err := openStore(ctx, "expire", useExisting, env)
	if err != nil {
		return err
	}
	if err := store.CheckTable(ctx); err != nil {
		return withTableName(cfg, err)
	}
	cancelled, err := store.ExpireOrders(ctx)
	fmt.Fprintf(env.Stdout, "cancelled %d expired orders\n", cancelled)
	return withTableName(cfg, err)
}

// expiryInterval is the time between two searches of a server for expired orders.
const expiryInterval = 30 * time.Second

// expireOrders periodically cancels expired orders, until ctx ends.
func expireOrders(ctx context.Context, store *dynamo.Store, log *slog.Logger, env Environment) {
	after := env.AfterFunc
	if after == nil {
		after = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	var expire func()
	expire = func() {
		if ctx.Err() != nil {
			return
		}
		cancelled, err := store.ExpireOrders(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			log.Warn("some orders have expired, but could not be cancelled", "cancelled", cancelled, "error", err)
		case cancelled > 0:
			log.Info("expired orders were cancelled", "cancelled", cancelled)
		}
		after(expiryInterval, expire)
	}
	after(expiryInterval, expire)
}
