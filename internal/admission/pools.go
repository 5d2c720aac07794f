package admission

import (
	"cmp"
	"context"
	"math"
	"runtime"
	"strconv"

	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/internal/setting"
)

// PoolID identifies a pool.
type PoolID int

// The pools, in the order in which a request uses them.
const (
	PoolConnections PoolID = iota
	PoolSockets
	PoolTokenVerifications
	PoolRequestBodies
	PoolRequests
	PoolParsing
	PoolOperationCost
	PoolResponses
	PoolSubscriptions
	PoolSubscriptionMemory
	PoolSubscriptionCatchUps
	PoolEventCost
	poolCount
)

// PoolDeclaration declares a pool. The pool's setting, its error messages and its row in
// docs/limits.md derive from the declaration.
type PoolDeclaration struct {
	// Name is the name of the pool in error messages and in the docs.
	Name string
	// Counts describes what the pool counts, such as "requests in progress".
	Counts string
	// Setting is the environment variable for the size of the pool. If DerivedFrom is set, Setting is
	// empty.
	Setting string
	// Default is the default value of Setting.
	Default int
	// DerivedFrom describes how the size depends on another pool or on the machine.
	DerivedFrom string
	// Meaning is the description of the setting in the docs. If Meaning is empty, the docs use
	// Counts instead.
	Meaning string
	derive  func(Sizes) int
	// Size is the capacity that all callers can use together.
	Size int
	// The pool ignores a request for at most UncountedUpTo units. Any other request counts as at least
	// Minimum units.
	UncountedUpTo, Minimum int
	// HeldDivisor is set if callers hold the capacity without a time limit. A customer with weight 1
	// can then use at most the size divided by HeldDivisor, or else one part. Without this maximum, a
	// few customers could keep all others out.
	HeldDivisor int
	// If Waits is true, requests wait until the pool has capacity. If Waits is false, they are
	// refused.
	Waits bool
	// Code is the error code of a refusal. If the client receives no error, Code is empty.
	Code string
	// Status is the HTTP status that the docs show for a refusal. If Status is 0, the docs show none.
	Status int
	// Consequence describes what happens if the pool is exhausted. It is set only if Code is empty.
	Consequence string
	// Advice describes what the client can do after a refusal, other than try again later.
	Advice string
}

// Sizes contains the size of each pool. 0 means the default size. The sizes of pools without a
// setting are ignored, because they are computed.
type Sizes [poolCount]int

const statusServiceUnavailable = 503

// heldDivisor is the HeldDivisor of the pools whose capacity is held without a time limit.
const heldDivisor = 16

// poolDeclarations declares all pools. The defaults suit a server with one or two cores.
var poolDeclarations = [poolCount]PoolDeclaration{
	PoolConnections: {
		Name: "connections", Counts: "open connections", Setting: "ORDERGRAPH_MAX_CONNECTIONS", Default: 4096,
		Consequence: "connection closed",
	},
	PoolSockets: {
		Name: "sockets", Counts: "WebSockets and event streams", DerivedFrom: "three quarters of `connections`",
		derive: func(s Sizes) int { return s[PoolConnections] * 3 / 4 }, HeldDivisor: heldDivisor,
		Code: errcode.Overloaded, Status: statusServiceUnavailable, Advice: "use one socket for several subscriptions",
	},
	PoolTokenVerifications: {
		Name: "verifications", Counts: "token signatures being verified", DerivedFrom: "half the processors",
		derive: func(Sizes) int { return runtime.GOMAXPROCS(0) / 2 }, Waits: true, Consequence: "waits",
	},
	PoolRequestBodies: {
		Name: "bodies", Counts: "bytes of request bodies over 16 KiB", Setting: "ORDERGRAPH_MAX_WAITING", Default: 64 << 20,
		Meaning:       "bytes of request bodies over 16 KiB; responses over 16 KiB have a separate limit of the same size",
		UncountedUpTo: 16 << 10, Code: errcode.Overloaded, Status: statusServiceUnavailable, Advice: "send a shorter body",
	},
	PoolRequests: {
		Name: "requests", Counts: "requests in progress", Setting: "ORDERGRAPH_MAX_CONCURRENT", Default: 256,
		Code: errcode.Overloaded, Status: statusServiceUnavailable, Advice: "send fewer requests at the same time",
	},
	PoolParsing: {
		Name: "preparations", Counts: "request bodies over 16 KiB and new documents being parsed", DerivedFrom: "all processors but one",
		derive: func(Sizes) int { return runtime.GOMAXPROCS(0) - 1 }, Waits: true, Consequence: "waits",
	},
	PoolOperationCost: {
		Name: "cost", Counts: "cost points of operations in progress", Setting: "ORDERGRAPH_MAX_CONCURRENT_COST", Default: 500_000,
		UncountedUpTo: 2000, Code: errcode.Overloaded, Status: statusServiceUnavailable, Advice: "request less data",
	},
	PoolResponses: {
		Name: "answers", Counts: "bytes of responses over 16 KiB", DerivedFrom: "same as `bodies`",
		derive: func(s Sizes) int { return s[PoolRequestBodies] }, UncountedUpTo: 16 << 10,
		Code: errcode.Overloaded, Status: statusServiceUnavailable, Advice: "request less data",
	},
	PoolSubscriptions: {
		Name: "subscriptions", Counts: "subscriptions and WebSocket operations", Setting: "ORDERGRAPH_MAX_SUBSCRIPTIONS", Default: 10_000, HeldDivisor: heldDivisor,
		Code: errcode.TooManySubscriptions, Status: statusServiceUnavailable, Advice: "complete other operations first",
	},
	PoolSubscriptionMemory: {
		Name: "subscriptionMemory", Counts: "bytes of the documents and variables of subscriptions", Setting: "ORDERGRAPH_MAX_SUBSCRIPTION_MEMORY", Default: 16 << 20, HeldDivisor: heldDivisor,
		Code: errcode.TooManySubscriptions, Advice: "send the same document as other subscriptions, with different variables",
	},
	PoolSubscriptionCatchUps: {
		Name: "catchUps", Counts: "subscriptions reading missed events", Setting: "ORDERGRAPH_MAX_CATCH_UPS", Default: 16,
		Waits: true, Consequence: "waits",
	},
	PoolEventCost: {
		Name: "events", Counts: "cost points of subscription events in progress", DerivedFrom: "a quarter of `cost`",
		derive: func(s Sizes) int { return s[PoolOperationCost] / 4 }, Minimum: 2000, Waits: true, Consequence: "waits",
	},
}

// Settings returns the settings of the pools. Pools with a derived size have no setting.
func (s *Sizes) Settings() (rows []setting.Setting) {
	for id, d := range &poolDeclarations {
		if d.Setting != "" {
			rows = append(rows, setting.Setting{Name: d.Setting, Value: setting.Number(&s[id], strconv.Itoa(d.Default), 1, math.MaxInt32), Meaning: cmp.Or(d.Meaning, d.Counts), Exceeded: d.RefusalMarkdown()})
		}
	}
	return rows
}

// withDefaults returns the sizes with default sizes and computed sizes filled in.
func (s Sizes) withDefaults() Sizes {
	for id, d := range &poolDeclarations {
		s[id] = cmp.Or(s[id], d.Default)
	}
	for id, d := range &poolDeclarations {
		if d.derive != nil {
			s[id] = max(1, d.derive(s))
		}
	}
	return s
}

// Controller contains the pools of a server. It is safe for concurrent use.
type Controller [poolCount]*Pool

// New returns a Controller with pools of the given sizes. A size of 0 means the default size.
func New(s Sizes) *Controller {
	c := new(Controller)
	for id, size := range s.withDefaults() {
		d := poolDeclarations[id]
		d.Size = size
		c[id] = newPool(d)
	}
	return c
}

// Sizes returns the sizes of the pools that have a setting. The other sizes are 0.
func (c *Controller) Sizes() (s Sizes) {
	for id, p := range c {
		if p.Setting != "" {
			s[id] = p.Size
		}
	}
	return s
}

// AcquireCatchUp waits until a subscription may read missed events. After reading the events, the
// subscription calls done. If ctx ends first, AcquireCatchUp returns the error of ctx.
func (c *Controller) AcquireCatchUp(ctx context.Context) (done func(), err error) {
	caller, pool := CallerFromContext(ctx), c[PoolSubscriptionCatchUps]
	if err := pool.Acquire(ctx, caller, 1); err != nil {
		return nil, err
	}
	return func() { pool.Release(caller, 1) }, nil
}
