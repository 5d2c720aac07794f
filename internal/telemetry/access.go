package telemetry

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"sync"
	"time"

	"github.com/ordergraph/ordergraph/graph/observe"
)

// The access log contains the first maxLinesPerSecond requests of each second. Of the other
// requests in that second, it contains only one in sampleEvery.
const (
	maxLinesPerSecond = 1000
	sampleEvery       = 100
)

// principalHashLength is the length in bytes of the hash that replaces a principal's ID in the log.
const principalHashLength = 6

// AccessLog writes one log entry for each request. It is safe for concurrent use. To save CPU time,
// AccessLog omits most entries after maxLinesPerSecond requests in a second.
type AccessLog struct {
	log *slog.Logger
	key []byte
	now func() time.Time

	mu sync.Mutex
	// second is the time of the first request in the current period of one second.
	second time.Time
	// requests is the number of requests in this period. omitted counts the entries that were omitted
	// since the log last reported this number.
	requests, omitted int
}

// NewAccessLog returns an access log that writes to the given logger. The log replaces the IDs of
// principals with keyed hashes. The key of the hashes derives from secret.
func NewAccessLog(log *slog.Logger, secret []byte, now func() time.Time) *AccessLog {
	return &AccessLog{log: log, key: hashWithKey(secret, "ordergraph access log"), now: now}
}

// AccessLogEntry describes a finished request.
type AccessLogEntry struct {
	observe.Operation
	// Transport is http, event-stream or websocket. For the delivery of an event, it is webhook.
	Transport string
	// Status is the HTTP status of the response. For an operation on a WebSocket, it is 0.
	Status int
	// Pool is the name of the admission pool that refused the request. If no pool refused the request,
	// Pool is empty.
	Pool string
	// Bytes is the length of the response in bytes. For an operation on a WebSocket, it is the total
	// length of the messages that the server has sent for the operation.
	Bytes int
	// Events is the number of events that the server has delivered to the client of a subscription.
	Events int
	// Principal is the ID of the authenticated principal. The log contains only a hash of this ID.
	// Role is the role of the principal. If the request was not authenticated, both are empty.
	Principal, Role string
	RequestID       string
	// Event is the ID of the event that was delivered to a webhook, and Lag is its age. For other
	// entries, both are empty.
	Event string
	Lag   time.Duration
}

// Record writes an entry to the access log. If there are too many requests in the current second,
// it may omit the entry.
func (a *AccessLog) Record(ctx context.Context, e *AccessLogEntry) {
	if !a.log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	written, omitted := a.sample()
	a.reportOmitted(ctx, omitted)
	if !written {
		return
	}
	attributes := make([]slog.Attr, 0, 20)
	add := func(a slog.Attr) { attributes = append(attributes, a) }
	addText := func(name, text string) {
		if text != "" {
			add(slog.String(name, text))
		}
	}
	add(slog.String("operation", e.Name))
	addText("document", e.DocumentHash())
	add(slog.String("type", e.Type))
	add(slog.String("code", e.Code()))
	add(slog.String("transport", e.Transport))
	if e.Status != 0 {
		add(slog.Int("status", e.Status))
	}
	addText("pool", e.Pool)
	add(slog.Float64("durationMs", float64(e.Duration.Microseconds())/1000))
	add(slog.Int("requests", e.Requests))
	add(slog.Float64("readUnits", e.ReadUnits))
	add(slog.Float64("writeUnits", e.WriteUnits))
	add(slog.Int("bytes", e.Bytes))
	if e.Events > 0 {
		add(slog.Int("events", e.Events))
	}
	addText("role", e.Role)
	if e.Principal != "" {
		add(slog.String("principal", hex.EncodeToString(hashWithKey(a.key, e.Principal)[:principalHashLength])))
	}
	addText("requestId", e.RequestID)
	if e.Event != "" {
		addText("event", e.Event)
		add(slog.Float64("lagMs", float64(e.Lag.Microseconds())/1000))
	}
	a.log.LogAttrs(ctx, slog.LevelInfo, "request", attributes...)
}

// Close logs how many entries were omitted, but not yet reported in the log. If a is nil, Close
// does nothing.
func (a *AccessLog) Close() {
	if a == nil {
		return
	}
	a.mu.Lock()
	omitted := a.omitted
	a.omitted = 0
	a.mu.Unlock()
	a.reportOmitted(context.Background(), omitted)
}

// sample counts a request and decides whether to log it. If written is true, the caller must write
// the entry. omitted is the number of omitted entries that the caller must report in the log.
func (a *AccessLog) sample() (written bool, omitted int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := a.now(); now.Sub(a.second) >= time.Second {
		omitted, a.omitted = a.omitted, 0
		a.second, a.requests = now, 0
	}
	a.requests++
	if a.requests > maxLinesPerSecond && a.requests%sampleEvery != 0 {
		a.omitted++
		return false, omitted
	}
	return true, omitted
}

func (a *AccessLog) reportOmitted(ctx context.Context, omitted int) {
	if omitted > 0 {
		a.log.LogAttrs(ctx, slog.LevelInfo, "requests were omitted from the access log, because there were too many in a second", slog.Int("omitted", omitted))
	}
}

func hashWithKey(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
