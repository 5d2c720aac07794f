package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/ordergraph/ordergraph/commerce"
	"github.com/ordergraph/ordergraph/dynamo"
	"github.com/ordergraph/ordergraph/dynamo/model"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/auth"
	"github.com/ordergraph/ordergraph/internal/config"
	"github.com/ordergraph/ordergraph/internal/server"
)

// checkServing checks the settings that a server needs and other commands do not: a choice of
// authentication, so that no DynamoDB table is open by mistake, and a key that callers do not know.
//
// Errors: one that says what to set.
func checkServing(cfg config.Config) error {
	switch {
	case cfg.Auth == "":
		return fmt.Errorf("ORDERGRAPH_AUTH is not set: set it to %s, so that each request needs a token (docs/authentication.md), or to %s, so that everyone who reaches the server can read and change everything", config.AuthJWT, config.AuthNone)
	case cfg.Auth == config.AuthNone && cfg.AuthAlias && cfg.Store == config.DynamoDB:
		return fmt.Errorf("AUTH=%[1]s does not open a DynamoDB table, as it may be meant for other software: set ORDERGRAPH_AUTH=%[1]s, so that everyone who reaches the server can read and change everything", config.AuthNone)
	case len(cfg.CursorKey) == 0:
		return fmt.Errorf("ORDERGRAPH_CURSOR_KEY is not set: with ORDERGRAPH_AUTH=%s, set it to a secret of 16 characters or more, such as `openssl rand -hex 32` makes, the same for all servers of a table", config.AuthJWT)
	}
	return nil
}

// authenticate makes a server check tokens until ctx ends, if it is configured to.
//
// Errors: one that says why the keys cannot be read.
func authenticate(ctx context.Context, cfg config.Config, opts *server.Options) error {
	if cfg.Auth != config.AuthJWT {
		return nil
	}
	against := cfg.JWT
	against.Log, against.Verifications = opts.Log, opts.Admission[admission.Verifications]
	against.CustomerExists = func(ctx context.Context, id commerce.CustomerID) (bool, error) {
		return customerExists(ctx, opts.Graph.Store, id)
	}
	tokens, err := auth.New(ctx, against)
	if err != nil {
		return fmt.Errorf("ORDERGRAPH_JWT_JWKS: %w", err)
	}
	opts.Auth, opts.Anonymous = tokens, cfg.Anonymous
	return nil
}

// customerExists reports whether there is a record of a customer (AP6), also one that cannot be
// read.
func customerExists(ctx context.Context, store *dynamo.Store, id commerce.CustomerID) (bool, error) {
	found, err := dynamo.ReadRecords(ctx, store, model.CustomerByID, []commerce.CustomerID{id})
	if err != nil {
		return false, err
	}
	return !errors.Is(found[0].Err, commerce.ErrNotFound), nil
}
