package cli

import (
	"context"
	"fmt"

	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/auth"
	"github.com/ordergraph/ordergraph/internal/config"
	"github.com/ordergraph/ordergraph/internal/server"
)

// checkServeConfig checks the settings that only the server requires. With a DynamoDB table,
// ORDERGRAPH_AUTH must be set, so that the table is not open to everyone by mistake.
func checkServeConfig(cfg config.Config) error {
	switch {
	case cfg.Auth == "":
		return fmt.Errorf("ORDERGRAPH_AUTH is not set: set it to %s to require a token with each request, or to %s to let everyone who reaches the server read and change everything; see docs/authentication.md", config.AuthJWT, config.AuthNone)
	case cfg.Auth == config.AuthNone && cfg.AuthFromAlias && cfg.Store == config.DynamoDB:
		return fmt.Errorf("AUTH=%[1]s is not accepted with a DynamoDB table, because AUTH may be set for other software: set ORDERGRAPH_AUTH=%[1]s instead, to let everyone who reaches the server read and change everything", config.AuthNone)
	case len(cfg.CursorKey) == 0:
		return fmt.Errorf("ORDERGRAPH_CURSOR_KEY is not set: ORDERGRAPH_AUTH=%s requires a secret of at least 16 characters, such as the output of `openssl rand -hex 32`; use the same secret for all servers of a table", config.AuthJWT)
	}
	return nil
}

// configureAuth configures the server to verify tokens if ORDERGRAPH_AUTH is jwt. If the keys come
// from a JWKS, the server refreshes them until ctx ends. If the keys cannot be read, configureAuth
// returns an error.
func configureAuth(ctx context.Context, cfg config.Config, opts *server.Options, env Environment) error {
	if cfg.Auth != config.AuthJWT {
		return nil
	}
	jwt := cfg.JWT
	jwt.RefreshOnUse = opts.Graph.Feed == nil // a server without a change feed runs in AWS Lambda
	jwt.Log, jwt.Verifications, jwt.AfterFunc = opts.Log, opts.Admission[admission.PoolTokenVerifications], env.AfterFunc
	jwt.CustomerExists = opts.Graph.Store.CustomerExists
	tokens, err := auth.New(ctx, jwt)
	if err != nil {
		return fmt.Errorf("ORDERGRAPH_JWT_JWKS: %w", err)
	}
	opts.Auth, opts.Anonymous = tokens, cfg.Anonymous
	return nil
}

// watchSecrets periodically reads the files that contain secrets, until ctx ends. If a secret has
// changed, the server uses the new secret.
func watchSecrets(ctx context.Context, cfg config.Config, opts server.Options, env Environment) {
	onChange := map[string]func(secret []byte){
		"ORDERGRAPH_CURSOR_KEY": opts.Graph.Cursors.ChangeKey,
		"ORDERGRAPH_JWT_SECRET": func(secret []byte) {
			if opts.Auth != nil {
				opts.Auth.ChangeSecret(secret)
			}
		},
	}
	if keys := cfg.Table.WebhookKeys; keys != nil {
		onChange[config.WebhookKeySetting] = func(text []byte) {
			_ = keys.Change(string(text)) // the error is nil, because the setting has been validated
		}
	}
	for _, w := range opts.Webhooks {
		onChange[config.WebhookSetting(w)] = func(secrets []byte) {
			_ = w.ChangeSecrets(string(secrets)) // the error is nil, because the setting has been validated
		}
	}
	config.WatchSecrets(ctx, cfg, config.WatchOptions{Log: opts.Log, AfterFunc: env.AfterFunc, OnChange: onChange})
}
