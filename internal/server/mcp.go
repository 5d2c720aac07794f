package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

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

func newMCPHandler(h httpHandler, originAllowed func(*http.Request) bool, opts graph.Options) mcpHandler {
	tools := &mcpTools{executor: h.executor, documents: opts.Documents, shards: func() int { return 1 }, prices: cmp.Or(opts.Prices, price.Standard())}
	if len(tools.documents) == 0 {
		tools.documents = mcptool.Standard()
	}
	if opts.Store != nil {
		tools.shards = opts.Store.Shards
	}
	return mcpHandler{h, originAllowed, tools, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools.server() }, &mcp.StreamableHTTPOptions{
		// The server checks the headers Host and Origin itself.
		Stateless: true, JSONResponse: true, DisableLocalhostProtection: true,
	})}
}

// mcpTools creates the tools with the first request, so that they do not delay the start of the
// server. It creates them again if the number of shards changes, which changes the costs.
type mcpTools struct {
	executor  *graph.Executor
	documents []document.TrustedDocument
	shards    func() int
	prices    price.Prices

	mu      sync.Mutex
	current *mcp.Server
	// createdFor is the number of shards that current assumes.
	createdFor int
}

// maxListedTools is the maximum number of tools in one response. Clients can request the next ones.
const maxListedTools = 250

func (t *mcpTools) server() *mcp.Server {
	t.mu.Lock()
	defer t.mu.Unlock()
	shards := t.shards()
	if t.current != nil && t.createdFor == shards {
		return t.current
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "ordergraph", Version: version.Get().Version}, &mcp.ServerOptions{
		Instructions: "The tools read and change the orders, customers, products and stock of a shop. The last sentence of each description is the maximum cost of a call. If a call of a tool with an idempotencyKey fails or its result is lost, repeat it with the same idempotencyKey. The change is made only once.",
		PageSize:     maxListedTools, Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
	})
	permissions := map[string][]access.Permission{}
	for _, tool := range mcptool.All(t.executor, t.documents, shards, t.prices) {
		permissions[tool.Definition.Name] = tool.Permissions
		s.AddTool(tool.Definition, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			call, _ := ctx.Value(mcpCallKey{}).(*mcpCall)
			return call.execute(tool, r.Params.Arguments)
		})
	}
	// Callers see only tools that they may call.
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			result, err := next(ctx, method, r)
			if list, ok := result.(*mcp.ListToolsResult); ok && err == nil {
				list.Tools = slices.DeleteFunc(list.Tools, func(tool *mcp.Tool) bool { return !t.executor.Permits(ctx, permissions[tool.Name]) })
			}
			return result, err
		}
	})
	t.current, t.createdFor = s, shards
	return s
}

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
	status, response, id, refused := h.respond(w, r)
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
			"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": failure.Message, "data": failure.Extensions},
		})})
	case len(response) == 0: // the response to a notification
		w.WriteHeader(status)
	default:
		h.writeCompressed(w, r, typeJSON, status, responseBody{rest: response})
	}
}

// respond reads a message and returns the response to it. The result id is the ID of the message, or
// nil for a message without an ID.
func (h mcpHandler) respond(w http.ResponseWriter, r *http.Request) (status int, response []byte, id any, refused *refusal) {
	if r.Method != http.MethodPost {
		refused := newRefusal(http.StatusMethodNotAllowed, errcode.MethodNotAllowed, "the method is not supported, because the server opens no streams: use POST")
		refused.allow = mcpAllowedMethods
		return 0, nil, nil, refused
	}
	if r.Header.Get("Origin") != "" && !httpheader.SameOrigin(r) && !h.originAllowed(r) {
		return 0, nil, nil, newRefusal(http.StatusForbidden, errcode.CSRFPrevented, "pages of this origin may not call tools: add the origin to ORDERGRAPH_CORS_ORIGINS")
	}
	r, body, paid, refused := h.receive(w, r, true, checkContentHeaders)
	if refused != nil {
		return 0, nil, nil, refused
	}
	message, refused := decodeMessage(body)
	if refused != nil {
		return 0, nil, nil, refused
	}
	ctx, calls := withExplain(r.Context(), r.Header), false
	if request, ok := message.(*jsonrpc.Request); ok {
		id, calls = request.ID.Raw(), request.Method == methodCallTool
		if request.IsCall() && !mcpMethods[request.Method] {
			return 0, nil, id, newRefusal(http.StatusNotFound, errcode.BadRequest, "the server has no method %.100q: it has only tools", request.Method)
		}
	}
	if !calls { // a call of a tool acquires its slot later
		if full := h.acquire(ctx, admission.PoolRequests, 1); full != nil {
			return 0, nil, id, full
		}
		defer h.releaseCapacity(ctx, admission.PoolRequests, 1)
	}
	call := &mcpCall{handler: h.httpHandler, ctx: ctx, paid: paid, bodySize: len(body)}
	written := call.serve(h.protocol, r, body)
	if full := h.acquire(ctx, admission.PoolResponses, written.body.Cap()); full != nil {
		if call.mutation {
			full.message = mutationResponseDropped().Errors[0].Message
		}
		return 0, nil, id, full
	}
	defer h.releaseCapacity(ctx, admission.PoolResponses, written.body.Cap())
	if written.status >= http.StatusBadRequest && !bytes.HasPrefix(written.body.Bytes(), []byte("{")) {
		return 0, nil, id, newRefusal(written.status, errcode.BadRequest, "%s", strings.TrimSpace(written.body.String()))
	}
	return cmp.Or(written.status, http.StatusOK), written.body.Bytes(), id, nil
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
	return message, nil
}

type mcpCallKey struct{}

// mcpCall is a message that the SDK handles.
type mcpCall struct {
	handler httpHandler
	// ctx is the context of the HTTP request. The contexts of the SDK do not end with it.
	ctx context.Context
	// paid is the number of points that are charged for the message. bodySize is its length in bytes.
	paid, bodySize int
	// mutation reports whether the message has executed a mutation.
	mutation bool
	// panicked is the value of a panic with its stack, or empty.
	panicked string
}

// serve lets the SDK handle a message. If a tool panics, serve panics, too. The SDK calls tools in
// goroutines of its own, where a panic would end the process.
func (c *mcpCall) serve(protocol http.Handler, r *http.Request, body []byte) *bufferedResponse {
	// If the client disconnects, the tool stops, and then the SDK.
	inner := r.Clone(context.WithValue(context.WithoutCancel(c.ctx), mcpCallKey{}, c))
	inner.Body, inner.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	inner.Header["Accept"] = []string{"application/json, text/event-stream"}
	inner.Header.Del("Last-Event-Id")
	written := &bufferedResponse{header: http.Header{}}
	if protocol.ServeHTTP(written, inner); c.panicked != "" {
		panic(c.panicked)
	}
	return written
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
