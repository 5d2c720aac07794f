GOLANGCI_LINT ?= $(or $(shell command -v golangci-lint),$(shell go env GOPATH)/bin/golangci-lint)
BASE_URL ?= http://127.0.0.1:8080
UI := internal/graphiql/ui
OUT ?= ordergraph
# The tags omit net/rpc and golang.org/x/net/trace. Both packages use templates. With templates, the
# linker cannot remove unused methods, and the binary is a third larger.
BUILD := CGO_ENABLED=0 go build -trimpath -tags lambda.norpc,grpcnotrace -ldflags='-s -w'

.PHONY: build release lambda test race lint lint-deploy prose site generate graphiql test-browser test-http test-clients test-electrodb test-live test-schema test-federation

build:
	$(BUILD) -o $(OUT) .

# Builds the last commit, for all platforms, into dist. Installs pinned tools on the first run.
release:
	.ci/release

# Packs the working tree for AWS Lambda: see docs/deployment.md.
lambda:
	GOOS=linux GOARCH=arm64 $(BUILD) -o dist/lambda/bootstrap .

test:
	go test ./...

race:
	go test -race ./...

lint:
	go vet ./...
	$(GOLANGCI_LINT) run ./...

# Installs pinned linters on the first run.
lint-deploy:
	deploy/lint

# Installs a pinned Vale on the first run.
prose:
	.ci/prose

# Builds the documentation as a site in the directory site, and checks its links. Installs pinned
# tools on the first run.
site:
	.ci/site/run

# Updates all derived files: generated code, tables of the docs, golden files.
generate:
	go generate ./...

# After a change below internal/graphiql/ui; the result is committed.
graphiql:
	npm --prefix $(UI) ci --ignore-scripts
	npm --prefix $(UI) run lint
	npm --prefix $(UI) run build
	go run ./internal/graphiql/pack $(UI)/dist $(UI).zip

# Needs Chromium, and a server with the sample data at BASE_URL; places orders there.
test-browser: build
	npm --prefix e2e/browser ci --ignore-scripts
	ORDERGRAPH=$(CURDIR)/ordergraph BASE_URL=$(BASE_URL) npm --prefix e2e/browser test

# Needs a server at BASE_URL.
test-http:
	npm --prefix e2e/http ci --ignore-scripts
	BASE_URL=$(BASE_URL) npm --prefix e2e/http test

# Needs a server at BASE_URL, and places orders there.
test-clients: build
	npm --prefix e2e/clients ci --ignore-scripts
	ORDERGRAPH=$(CURDIR)/ordergraph BASE_URL=$(BASE_URL) npm --prefix e2e/clients test

test-electrodb: build
	npm --prefix e2e/electrodb ci --ignore-scripts
	ORDERGRAPH=$(CURDIR)/ordergraph npm --prefix e2e/electrodb test

test-live: build
	npm --prefix e2e/live ci --ignore-scripts
	ORDERGRAPH=$(CURDIR)/ordergraph npm --prefix e2e/live test

# Needs a server at BASE_URL.
test-schema: build
	npm --prefix e2e/schema ci --ignore-scripts
	ORDERGRAPH=$(CURDIR)/ordergraph BASE_URL=$(BASE_URL) npm --prefix e2e/schema test

# Needs a server at BASE_URL, and places orders there.
test-federation:
	npm --prefix e2e/federation ci --ignore-scripts
	BASE_URL=$(BASE_URL) npm --prefix e2e/federation test
