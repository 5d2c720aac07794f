package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/config"
	"github.com/ordergraph/ordergraph/internal/gctuning"
	"github.com/ordergraph/ordergraph/internal/lambda"
	"github.com/ordergraph/ordergraph/internal/server"
)

// Environment variables that AWS Lambda sets.
const (
	// lambdaRuntimeAPIVariable contains the address of Lambda's runtime API.
	lambdaRuntimeAPIVariable = "AWS_LAMBDA_RUNTIME_API"
	// lambdaMemoryVariable contains the memory size of the Lambda function in MB.
	lambdaMemoryVariable = "AWS_LAMBDA_FUNCTION_MEMORY_SIZE"
)

// serveLambda serves queries and mutations in AWS Lambda. Lambda freezes the process between
// invocations, so serveLambda does not serve subscriptions and does not refresh the JWKS in the
// background.
func serveLambda(ctx context.Context, args []string, env Environment) error {
	if err := parseArgs("lambda", args, 0, nil, nil); err != nil {
		return err
	}
	if env.Getenv(lambdaRuntimeAPIVariable) == "" {
		return fmt.Errorf("%s is not set, so this process does not run in AWS Lambda: use the command serve instead", lambdaRuntimeAPIVariable)
	}
	cfg, err := env.readConfig()
	if err != nil {
		return err
	}
	switch {
	case cfg.Store != config.DynamoDB:
		return fmt.Errorf("ORDERGRAPH_STORE is %s, but the embedded store would lose its data when Lambda stops the process: set ORDERGRAPH_STORE=%s", cfg.Store, config.DynamoDB)
	case cfg.Limits.Answer > lambda.MaxDataBytes:
		return fmt.Errorf("ORDERGRAPH_MAX_ANSWER is %d, but the responses of Lambda are limited to 6 MB: set it to at most %d", cfg.Limits.Answer, lambda.MaxDataBytes)
	}
	if err := checkServeConfig(cfg); err != nil {
		return err
	}
	log := newLog(cfg, env)
	if megabytes, err := strconv.ParseUint(env.Getenv(lambdaMemoryVariable), 10, 32); err == nil {
		cfg.GCTuning.Memory = megabytes << 20
	}
	defer gctuning.Start(cfg.GCTuning)()
	observers, err := openTelemetry(ctx, &cfg, nil, log)
	if err != nil {
		return err
	}
	store, _, err := openForServing(ctx, cfg, false, env, log)
	if err != nil {
		return err
	}
	handler, _, err := newHandler(ctx, cfg, server.Options{Graph: graph.Options{Store: store}, Admission: admission.New(cfg.PoolSizes), Log: log, Telemetry: observers}, env)
	if err != nil {
		return err
	}
	lambda.Serve(ctx, handler, observers.Tracer.Flush)
	return nil
}
