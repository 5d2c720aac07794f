package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/internal/admission"
	"github.com/ordergraph/ordergraph/internal/httpheader"
	"github.com/ordergraph/ordergraph/internal/mcptool"
	"github.com/ordergraph/ordergraph/internal/price"
	"github.com/ordergraph/ordergraph/internal/version"
)

// mcpHandler serves the Model Context Protocol (https://modelcontextprotocol.io) over streamable HTTP,
// without sessions and without streams. It reads requests and executes tools like httpHandler. The
// MCP SDK only translates between its messages and tools.
type mcpHandler struct {
	httpHandler
	originAllowed func(*http.Request) bool
	tools         *mcpTools
	protocol      *mcp.StreamableHTTPHandler
}

func newMCPHandler(h httpHandler, originAllowed func(*http.Request) bool, opts graph.Options, log *slog.Logger) mcpHandler {
	b := &toolBuilder{executor: h.executor, documents: opts.Documents, prices: cmp.Or(opts.Prices, price.Standard()), log: log}
	if len(b.documents) == 0 {
		b.documents = mcptool.Standard()
	}
	tools := &mcpTools{shards: func() int { return 1 }, build: b.build, log: log}
	if opts.Store != nil {
		tools.shards = opts.Store.Shards
	}
	server := func(r *http.Request) *mcp.Server {
		call, _ := r.Context().Value(mcpCallKey{}).(*mcpCall)
		return call.server
	}
	return mcpHandler{h, originAllowed, tools, mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
		// The server checks the headers Host and Origin itself.
		Stateless: true, JSONResponse: true, DisableLocalhostProtection: true,
	})}
}

// mcpTools builds the tools with the first request, so that they do not delay the start of the
// server. It builds them again if the number of shards changes, which changes the costs.
type mcpTools struct {
	shards func() int
	build  func(shards int) *mcp.Server
	log    *slog.Logger

	mu      sync.Mutex
	current *mcp.Server
	// builtFor is the number of shards that current assumes.
	builtFor int
	// next is not nil while tools are being built.
	next *toolBuild
}

// toolBuild is the result of mcpTools.build after done is closed.
type toolBuild struct {
	done   chan struct{}
	server *mcp.Server
	// panicked is the value of a panic with its stack, or empty.
	panicked string
}

// server returns a server with the tools. While they are built again, it returns the previous ones.
// It returns an error if ctx ends before the first tools exist.
func (t *mcpTools) server(ctx context.Context) (*mcp.Server, error) {
	shards := t.shards()
	t.mu.Lock()
	current := t.current
	if t.next == nil && (current == nil || t.builtFor != shards) {
		t.next = &toolBuild{done: make(chan struct{})}
		go t.finish(t.next, shards)
	}
	next := t.next
	t.mu.Unlock()
	if current != nil {
		return current, nil
	}
	select {
	case <-next.done:
		if next.panicked != "" {
			panic(next.panicked)
		}
		return next.server, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// finish builds the tools. If this panics, the requests that wait panic, and the previous tools remain.
func (t *mcpTools) finish(b *toolBuild, shards int) {
	defer func() {
		if panicked := recover(); panicked != nil {
			b.panicked = fmt.Sprintf("%v\n%s", panicked, debug.Stack())
			t.log.Error("the tools for agents cannot be built", "error", b.panicked)
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.current, t.builtFor, t.next = cmp.Or(b.server, t.current), shards, nil
		close(b.done)
	}()
	b.server = t.build(shards)
}

// maxListedTools is the maximum number of tools in one response. Clients can request the next ones.
const maxListedTools = 250

// toolBuilder builds the tools for trusted documents.
type toolBuilder struct {
	executor  *graph.Executor
	documents []document.TrustedDocument
	prices    price.Prices
	log       *slog.Logger
	logged    sync.Once
}

// maxLoggedDocuments is the maximum number of documents in one log entry.
const maxLoggedDocuments = 10

func (b *toolBuilder) build(shards int) *mcp.Server {
	tools, failures := mcptool.All(b.executor, b.documents, shards, b.prices)
	if len(failures) > 0 {
		b.logged.Do(func() {
			b.log.Warn("trusted documents that fail the check are not tools: run 'ordergraph documents check'", "documents", len(failures), "failures", failures[:min(len(failures), maxLoggedDocuments)])
		})
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "ordergraph", Version: version.Get().Version}, &mcp.ServerOptions{
		Instructions: "The tools read and change the orders, customers, products and stock of a shop. The last sentence of each description is the maximum cost of a call. If a call of a tool with an idempotencyKey fails or its result is lost, repeat it with the same idempotencyKey. The change is made only once.",
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = cacheScope },
	})
	slices.SortFunc(tools, func(a, b *mcptool.Tool) int { return strings.Compare(a.Definition.Name, b.Definition.Name) })
	permissions := map[string][]access.Permission{}
	for _, tool := range tools {
		permissions[tool.Definition.Name] = tool.Permissions
		s.AddTool(tool.Definition, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			call, _ := ctx.Value(mcpCallKey{}).(*mcpCall)
			return call.execute(tool, r.Params.Arguments)
		})
	}
	// For callers, only the tools exist that they may call.
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			switch params := r.GetParams().(type) {
			case *mcp.ListToolsParams:
				call, _ := ctx.Value(mcpCallKey{}).(*mcpCall)
				return call.list(tools, params)
			case *mcp.CallToolParamsRaw:
				if !b.executor.Permits(ctx, permissions[params.Name]) {
					// The same error as for a tool that does not exist.
					return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q", params.Name)}
				}
			}
			return next(ctx, method, r)
		}
	})
	return s
}

// cacheScope declares that a response is for one caller only.
const cacheScope = "private"

// mcpMethods are the methods that clients may call. In particular, they may not open streams.
var mcpMethods = map[string]bool{"initialize": true, "ping": true, "server/discover": true, "tools/list": true, methodCallTool: true}

const methodCallTool = "tools/call"

// mcpAllowedMethods are the HTTP methods in the Allow header of responses.
const mcpAllowedMethods = "POST, OPTIONS"

// ServeHTTP responds to one message of a client.
func (h mcpHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header()["X-Content-Type-Options"], w.Header()["Cache-Control"] = nosniff, noStore
	if r.Method == http.MethodOptions {
		w.Header().Set("Allow", mcpAllowedMethods)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	call := &mcpCall{handler: h.httpHandler, ctx: r.Context()}
	refused := h.respond(call, w, r)
	if refused == nil {
		ctx, length := call.ctx, call.written.body.Cap()
		if refused = h.acquire(ctx, admission.PoolResponses, length); refused == nil {
			defer h.releaseCapacity(ctx, admission.PoolResponses, length)
		} else if call.mutation {
			// Unlike with status 503, clients do not repeat the call.
			refused.status, refused.message = http.StatusOK, mutationResponseDropped().Errors[0].Message
		}
	}
	setWriteDeadline(w, h.limits.AnswerTime)
	switch {
	case refused != nil:
		h.recordRefusal(r.Context(), refused)
		delayRefusal(r.Context(), refused, graph.Result{})
		refused.setHeaders(w.Header())
		failure, code := refused.result().Errors[0], jsonrpc.CodeInvalidRequest
		if refused.status == http.StatusNotFound {
			code = jsonrpc.CodeMethodNotFound
		}
		h.writeCompressed(w, r, typeJSON, refused.status, responseBody{rest: mustMarshal(map[string]any{
			"jsonrpc": "2.0", "id": call.id, "error": map[string]any{"code": code, "message": failure.Message, "data": failure.Extensions},
		})})
	case call.written.body.Len() == 0: // the response to a notification
		w.WriteHeader(cmp.Or(call.written.status, http.StatusOK))
	default:
		h.writeCompressed(w, r, typeJSON, cmp.Or(call.written.status, http.StatusOK), responseBody{rest: call.written.body.Bytes()})
	}
}

// respond reads a message and lets the SDK write the response to call.written.
func (h mcpHandler) respond(call *mcpCall, w http.ResponseWriter, r *http.Request) *refusal {
	if r.Method != http.MethodPost {
		refused := newRefusal(http.StatusMethodNotAllowed, errcode.MethodNotAllowed, "the method is not supported, because the server opens no streams: use POST")
		refused.allow = mcpAllowedMethods
		return refused
	}
	if r.Header.Get("Origin") != "" && !httpheader.SameOrigin(r) && !h.originAllowed(r) {
		return newRefusal(http.StatusForbidden, errcode.CSRFPrevented, "pages of this origin may not call tools: add the origin to ORDERGRAPH_CORS_ORIGINS")
	}
	r, body, paid, refused := h.receive(w, r, true, checkContentHeaders)
	if refused != nil {
		return refused
	}
	message, refused := decodeMessage(body)
	if refused != nil {
		return refused
	}
	ctx, calls := withExplain(r.Context(), r.Header), false
	if request, ok := message.(*jsonrpc.Request); ok {
		call.id, calls = request.ID.Raw(), request.Method == methodCallTool
		if request.IsCall() && !mcpMethods[request.Method] {
			return newRefusal(http.StatusNotFound, errcode.BadRequest, "the server has no method %.100q: it has only tools", request.Method)
		}
	}
	call.ctx, call.paid, call.bodySize = ctx, paid, len(body)
	if refused := h.awaitTools(call); refused != nil {
		return refused
	}
	if !calls { // a call of a tool acquires its slot later
		if full := h.acquire(ctx, admission.PoolRequests, 1); full != nil {
			return full
		}
		defer h.releaseCapacity(ctx, admission.PoolRequests, 1)
	}
	call.serve(h.protocol, r, body)
	if call.refused != nil {
		return call.refused
	}
	if written := call.written; written.status >= http.StatusBadRequest && !bytes.HasPrefix(written.body.Bytes(), []byte("{")) {
		return newRefusal(written.status, errcode.BadRequest, "%s", strings.TrimSpace(written.body.String()))
	}
	return nil
}

// awaitTools waits until the first tools have been built.
func (h mcpHandler) awaitTools(call *mcpCall) *refusal {
	ctx, cancel := context.WithTimeout(call.ctx, h.limits.RequestTime)
	defer cancel()
	var err error
	if call.server, err = h.tools.server(ctx); err != nil {
		return newRefusal(http.StatusServiceUnavailable, errcode.TimedOut, "the server is still building its tools: try again in a moment")
	}
	return nil
}

// decodeMessage decodes a message of JSON-RPC.
func decodeMessage(body []byte) (jsonrpc.Message, *refusal) {
	if !utf8.Valid(body) || tooManyJSONValues(body) {
		return nil, badRequest("the body is not valid UTF-8, or has more than %d JSON values", maxJSONValues)
	}
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) || !json.Valid(body) {
		return nil, badRequest("the body is not a JSON object: send one JSON-RPC message per request")
	}
	message, err := jsonrpc.DecodeMessage(body)
	if err != nil {
		return nil, badRequest("the body is not a JSON-RPC message: send an object with jsonrpc, method, params and, for calls, an id")
	}
	if !hasExactID(body) {
		return nil, badRequest("the id is a number that the server cannot repeat exactly: send a string, or an integer from -2^53 to 2^53")
	}
	return message, nil
}

// maxIntegerID is the maximum absolute value of an ID that is a number. The SDK converts IDs to float64,
// which cannot represent each larger integer.
const maxIntegerID = 1 << 53

// hasExactID reports whether the SDK repeats the ID of a message without changing it.
func hasExactID(message []byte) bool {
	var decoded struct {
		ID jsontext.Value `json:"id"`
	}
	if jsonv2.Unmarshal(message, &decoded, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) != nil {
		return false
	}
	if decoded.ID.Kind() != jsontext.KindNumber {
		return true
	}
	n, err := strconv.ParseInt(string(decoded.ID), 10, 64)
	return err == nil && -maxIntegerID <= n && n <= maxIntegerID
}

type mcpCallKey struct{}

// mcpCall is a message that the SDK handles.
type mcpCall struct {
	handler httpHandler
	// ctx is the context of the HTTP request. The contexts of the SDK do not end with it.
	ctx context.Context
	// id is the ID of the message, or nil for a message without an ID.
	id any
	// server has the tools.
	server *mcp.Server
	// paid is the number of points that are charged for the message. bodySize is its length in bytes.
	paid, bodySize int
	// mutation reports whether the message has executed a mutation.
	mutation bool
	// refused replaces the response of the SDK if it is not nil.
	refused *refusal
	// panicked is the value of a panic with its stack, or empty.
	panicked string
	// written is the response of the SDK.
	written bufferedResponse
}

// serve lets the SDK handle a message. If a tool panics, serve panics, too. The SDK calls tools in
// goroutines of its own, where a panic would end the process.
func (c *mcpCall) serve(protocol http.Handler, r *http.Request, body []byte) {
	// If the client disconnects, the tool stops, and then the SDK.
	inner := r.Clone(context.WithValue(context.WithoutCancel(c.ctx), mcpCallKey{}, c))
	inner.Body, inner.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	inner.Header["Accept"] = []string{"application/json, text/event-stream"}
	inner.Header.Del("Last-Event-Id")
	c.written.header = http.Header{}
	if protocol.ServeHTTP(&c.written, inner); c.panicked != "" {
		panic(c.panicked)
	}
}

// errRefused is an error that no client receives, because mcpCall.refused replaces it.
var errRefused = errors.New("the call is refused")

// list returns the tools that the caller may call, after the tools in the previous response. tools is
// sorted by name. The cursor is the name of the last tool. The caller pays for the bytes of the list.
func (c *mcpCall) list(tools []*mcptool.Tool, params *mcp.ListToolsParams) (*mcp.ListToolsResult, error) {
	after, bytes := "", 0
	if params != nil {
		after = params.Cursor
	}
	result := &mcp.ListToolsResult{Tools: []*mcp.Tool{}, Cacheable: mcp.Cacheable{CacheScope: cacheScope}}
	for _, tool := range tools {
		if tool.Definition.Name <= after || !c.handler.executor.Permits(c.ctx, tool.Permissions) {
			continue
		}
		if len(result.Tools) == maxListedTools {
			result.NextCursor = result.Tools[maxListedTools-1].Name
			break
		}
		result.Tools, bytes = append(result.Tools, tool.Definition), bytes+tool.Size
	}
	if _, limited := c.handler.executor.Charge(c.ctx, bytes); limited != nil {
		c.refused = rateLimited(limited)
		return nil, errRefused
	}
	return result, nil
}

// maxTextContent is the maximum length in bytes of a response that the result contains twice: as JSON,
// and as text for clients that cannot read the JSON.
const maxTextContent = 1 << 20

// execute executes a tool like a request to PathGraphQL.
func (c *mcpCall) execute(tool *mcptool.Tool, arguments json.RawMessage) (result *mcp.CallToolResult, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			c.panicked = fmt.Sprintf("%v\n%s", panicked, debug.Stack())
			result = &mcp.CallToolResult{IsError: true}
		}
	}()
	executed, refused := c.handler.execute(c.ctx, receivedRequest{bodySize: c.bodySize, decode: func() (graph.Request, *refusal) {
		var given parameter
		if len(arguments) > 0 && (unmarshal(arguments, &given) != nil || !given.isMissingOrKind('{')) {
			return graph.Request{}, badRequest("the arguments are not a JSON object")
		}
		request, problem := tool.Request(given.object)
		if problem != "" {
			return graph.Request{}, badRequest("%s", problem)
		}
		request.ChargedPoints = c.paid
		return request, nil
	}}, c.handler.executor.Execute)
	if refused != nil {
		if refused.status == http.StatusServiceUnavailable {
			c.refused = refused
			return nil, errRefused
		}
		c.handler.recordRefusal(c.ctx, refused)
		executed = refused.result()
	}
	delayRefusal(c.ctx, refused, executed)
	c.mutation = executed.Mutation
	failed := len(executed.Errors) > 0 || tool.HasUserErrors(executed.Data)
	body := newResponseBody(executed)
	text := slices.Concat(body.head, body.rest)
	result = &mcp.CallToolResult{StructuredContent: json.RawMessage(text), IsError: failed}
	if len(text) > maxTextContent {
		text = []byte("The result is in structuredContent.")
	}
	result.Content = []mcp.Content{&mcp.TextContent{Text: string(text)}}
	return result, nil
}

// bufferedResponse records the response of the SDK.
type bufferedResponse struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header returns the headers, which clients do not receive.
func (w *bufferedResponse) Header() http.Header { return w.header }

// WriteHeader records the status.
func (w *bufferedResponse) WriteHeader(status int) { w.status = status }

// Write records a part of the body.
func (w *bufferedResponse) Write(b []byte) (int, error) { return w.body.Write(b) }
