package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/internal/auth"
	"github.com/ordergraph/ordergraph/internal/config"
	"github.com/ordergraph/ordergraph/internal/server"
)

// authChosen tells whether the operator has said who may use a server: what is served from DynamoDB is somebody's business, so it is not left
// open because nobody thought of it.
func authChosen(cfg config.Config) error {
	if cfg.Auth != "" {
		return nil
	}
	return fmt.Errorf("who may use the server is not said: set ORDERGRAPH_AUTH to %s, so that each request needs a token (docs/authentication.md), or to %s, so that all who reach the server can read and change everything", config.AuthJWT, config.AuthNone)
}

// authenticate makes a server check tokens until ctx ends, if it is configured to.
//
// Errors: one that says why the keys cannot be read.
func authenticate(ctx context.Context, cfg config.Config, opts *server.Options) error {
	if cfg.Auth != config.AuthJWT {
		return nil
	}
	against := cfg.JWT
	against.Log = opts.Log
	against.CustomerExists = func(ctx context.Context, id commerce.CustomerID) (bool, error) {
		return customerExists(ctx, opts.Graph.Store, id)
	}
	tokens, err := auth.New(ctx, against)
	if err != nil {
		return fmt.Errorf("ORDERGRAPH_JWT_JWKS: %w", err)
	}
	opts.Auth = tokens
	return nil
}

// customerExists tells whether there is a record of a customer (AP6), also one that cannot be read.
func customerExists(ctx context.Context, store *dynamo.Store, id commerce.CustomerID) (bool, error) {
	found, err := store.CustomersByID(ctx, []commerce.CustomerID{id})
	if err != nil {
		return false, err
	}
	return !errors.Is(found[0].Err, commerce.ErrNotFound), nil
}
