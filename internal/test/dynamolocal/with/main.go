// The command "with" starts DynamoDB Local, runs another command, and then stops DynamoDB Local:
//
//	with <command> [argument]...
//
// The other command finds DynamoDB Local through its AWS_ variables. Tests that are not written in
// Go use this program.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/ordergraph/ordergraph/internal/test/dynamolocal"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: with <command> [argument]...")
		os.Exit(2)
	}
	err := run(exec.Command(os.Args[1], os.Args[2:]...))
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		os.Exit(exit.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "with:", err)
		os.Exit(1)
	}
}

// run runs cmd while DynamoDB Local is running. It returns the error of dynamolocal.Start or of
// cmd.
func run(cmd *exec.Cmd) error {
	instance, err := dynamolocal.Start(context.Background())
	if err != nil {
		return err
	}
	defer instance.Stop()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(append(os.Environ(), dynamolocal.Environment()...), "AWS_ENDPOINT_URL_DYNAMODB="+instance.Endpoint())
	return cmd.Run()
}
