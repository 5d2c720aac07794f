// Command ordergraph serves e-commerce orders through a GraphQL API. It stores all records in one
// DynamoDB table.
package main

//go:generate go run ./internal/generate

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/ordergraph/ordergraph/internal/cli"
	"github.com/ordergraph/ordergraph/internal/config"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal starts a graceful shutdown. A second signal terminates the process immediately.
	context.AfterFunc(ctx, stop)
	return cli.Run(ctx, os.Args[1:], cli.Environment{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: config.Getenv, Environ: config.Environ})
}
