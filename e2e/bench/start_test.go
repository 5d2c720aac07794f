package bench_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ordergraph/ordergraph/internal/server"
)

// BenchmarkStart measures the time from the start of the built program to its first response, with
// sample data in the built-in store.
func BenchmarkStart(b *testing.B) {
	program := filepath.Join(b.TempDir(), "ordergraph")
	build := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-o", program, "../..")
	if output, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, output)
	}
	for b.Loop() {
		startAndQuery(b, program)
	}
}

// startAndQuery starts the program, sends one request and ends the program.
func startAndQuery(b *testing.B, program string) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	process := serverCommand(ctx, program)
	pipe, err := process.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := process.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		cancel()
		_ = process.Wait() // the error is the kill signal
	}()
	stdout := bufio.NewReader(pipe)
	var url []string
	for url == nil {
		line, err := stdout.ReadString('\n')
		if err != nil {
			b.Fatalf("the server prints no URL: %v", err)
		}
		url = addressPattern.FindStringSubmatch(line)
	}
	query(b, url[1])
}

func serverCommand(ctx context.Context, program string) *exec.Cmd {
	c := exec.CommandContext(ctx, program, "-addr", "127.0.0.1:0")
	// Ignore the settings of the developer's own table.
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "ORDERGRAPH_") && !strings.HasPrefix(variable, "AUTH=") {
			c.Env = append(c.Env, variable)
		}
	}
	return c
}

var addressPattern = regexp.MustCompile(`GraphQL +(http://\S+)` + server.PathGraphQL)

// query sends one request on a new connection.
func query(b *testing.B, url string) {
	b.Helper()
	const query = `{"query":"{ customer(id: \"cust_01\") { name } }"}`
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Post(url+server.PathGraphQL, "application/json", strings.NewReader(query))
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || !bytes.Contains(text, []byte("Alice Chen")) {
		b.Fatalf("unexpected response %.300s: %v", text, err)
	}
}
