package graph

import (
	"context"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo/feed"
)

func (r *orderUpdateResolver) ID(ctx context.Context, obj *feed.OrderChange) (*string, error) {
	return resumeID(obj), nil
}

func (r *subscriptionResolver) OrderStatusChanged(ctx context.Context, status *commerce.Status, after *string) (<-chan *feed.OrderChange, error) {
	return r.orderStatusChanged(ctx, status, after)
}
