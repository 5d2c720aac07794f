package admission

import (
	"cmp"
	"context"
	"math"
	"runtime"

	"github.com/ordergraph/ordergraph/graph/errcode"
	"github.com/ordergraph/ordergraph/internal/setting"
)

// ID identifies a pool.
type ID int

// Pools, in the order in which a request meets them.
const (
	Connections ID = iota
	Sockets
	Verifications
	Bodies
	Requests
	Preparations
	Cost
	Answers
	Subscriptions
	SubscriptionMemory
	CatchUps
	Events
	pools
)

// Declaration declares a pool. Its setting, its row in docs/limits.md, its refusals and the tests
// of its shares derive from it.
type Declaration struct {
	// Name is the name that refusals and the docs call the pool by.
	Name string
	// Holds says what callers have of the pool, such as "requests in progress".
	Holds string
	// Setting is the environment variable of the size, and Default its default. Both are empty for
	// a pool whose size derives from another's or from the machine; Derived then says how.
	Setting string
	Default int
	Derived string
	// Meaning describes the setting; empty if Holds says it.
	Meaning string
	derive  func(Sizes) int
	// Size is the size: how much all callers can have together.
	Size int
	// Uncounted is the size up to which a part is not counted, and Least what a part takes at least.
	Uncounted, Least int
	// Waits reports whether a caller that cannot have a part now waits for it. Otherwise it is
	// refused.
	Waits bool
	// Code is the error code of a refusal, empty if there is no error; Status is its HTTP status, 0
	// for none.
	Code   string
	Status int
	// Otherwise says what happens instead of an error with a code.
	Otherwise string
	// Advice is what a client that is refused can do, after "try again in a moment".
	Advice string
}

// Sizes are the sizes of pools that have a setting; 0 stands for the default.
type Sizes [pools]int

const unavailable = 503

// declarations are all pools that callers share. The defaults are for a server of one or two cores.
var declarations = [pools]Declaration{
	Connections: {
		Name: "connections", Holds: "open connections", Setting: "ORDERGRAPH_MAX_CONNECTIONS", Default: 4096,
		Otherwise: "a connection is closed",
	},
	Sockets: {
		Name: "sockets", Holds: "WebSockets and event streams", Derived: "three quarters of `connections`",
		derive: func(s Sizes) int { return s[Connections] * 3 / 4 },
		Code:   errcode.Overloaded, Status: unavailable, Advice: "use one socket for several subscriptions",
	},
	Verifications: {
		Name: "verifications", Holds: "token signatures being verified", Derived: "half of the processors",
		derive: func(Sizes) int { return runtime.GOMAXPROCS(0) / 2 }, Waits: true, Otherwise: "the request waits",
	},
	Bodies: {
		Name: "bodies", Holds: "bytes of arriving request bodies over 16 KiB", Setting: "ORDERGRAPH_MAX_WAITING", Default: 64 << 20,
		Meaning:   "bytes of arriving request bodies over 16 KiB and, separately, of responses over 16 KiB that clients are reading",
		Uncounted: 16 << 10, Code: errcode.Overloaded, Status: unavailable, Advice: "send a shorter body",
	},
	Requests: {
		Name: "requests", Holds: "requests in progress", Setting: "ORDERGRAPH_MAX_CONCURRENT", Default: 256,
		Code: errcode.Overloaded, Status: unavailable, Advice: "send fewer at the same time",
	},
	Preparations: {
		Name: "preparations", Holds: "new documents being parsed, and bodies over 16 KiB being decoded", Derived: "all processors but one",
		derive: func(Sizes) int { return runtime.GOMAXPROCS(0) - 1 }, Waits: true, Otherwise: "the request waits",
	},
	Cost: {
		Name: "cost", Holds: "cost points of operations being executed", Setting: "ORDERGRAPH_MAX_CONCURRENT_COST", Default: 500_000,
		Uncounted: 2000, Code: errcode.Overloaded, Status: unavailable, Advice: "ask for less",
	},
	Answers: {
		Name: "answers", Holds: "bytes of responses over 16 KiB that clients are reading", Derived: "as `bodies`",
		derive: func(s Sizes) int { return s[Bodies] }, Uncounted: 16 << 10,
		Code: errcode.Overloaded, Status: unavailable, Advice: "ask for less",
	},
	Subscriptions: {
		Name: "subscriptions", Holds: "subscriptions and other WebSocket operations in progress", Setting: "ORDERGRAPH_MAX_SUBSCRIPTIONS", Default: 10_000,
		Code: errcode.TooManySubscriptions, Status: unavailable, Advice: "complete others",
	},
	SubscriptionMemory: {
		Name: "subscriptionMemory", Holds: "bytes of distinct documents, and of variables, of subscriptions", Setting: "ORDERGRAPH_MAX_SUBSCRIPTION_MEMORY", Default: 16 << 20,
		Code: errcode.TooManySubscriptions, Advice: "send the document that others send and the rest as variables",
	},
	CatchUps: {
		Name: "catchUps", Holds: "subscriptions reading missed events", Setting: "ORDERGRAPH_MAX_CATCH_UPS", Default: 16,
		Waits: true, Otherwise: "the subscription waits",
	},
	Events: {
		Name: "events", Holds: "cost points of events being executed", Derived: "a quarter of `cost`",
		derive: func(s Sizes) int { return s[Cost] / 4 }, Least: 2000, Waits: true, Otherwise: "the event waits",
	},
}

// Settings are the rows of the pools that have a setting.
func (s *Sizes) Settings() (rows []setting.Setting) {
	for id, d := range &declarations {
		if d.Setting != "" {
			rows = append(rows, setting.Setting{Name: d.Setting, Value: setting.Number(&s[id], itoa(d.Default), 1, math.MaxInt32), Meaning: cmp.Or(d.Meaning, d.Holds), Exceeded: d.Exceeded()})
		}
	}
	return rows
}

// withDefaults returns the sizes of all pools.
func (s Sizes) withDefaults() Sizes {
	for id, d := range &declarations {
		s[id] = cmp.Or(s[id], d.Default)
	}
	for id, d := range &declarations {
		if d.derive != nil {
			s[id] = max(1, d.derive(s))
		}
	}
	return s
}

// Controller has the pools of a server. It is safe for concurrent use.
type Controller [pools]*Pool

// New returns a Controller with pools of these sizes.
func New(s Sizes) *Controller {
	c := new(Controller)
	for id, size := range s.withDefaults() {
		d := declarations[id]
		d.Size = size
		c[id] = newPool(d)
	}
	return c
}

// Sizes returns the sizes of the pools that have a setting.
func (c *Controller) Sizes() (s Sizes) {
	for id, p := range c {
		if p.Setting != "" {
			s[id] = p.Size
		}
	}
	return s
}

// CatchingUp waits until the caller of a context can read missed events, and returns what ends
// that.
//
// Errors: that of the context.
func (c *Controller) CatchingUp(ctx context.Context) (done func(), err error) {
	caller, pool := CallerOf(ctx), c[CatchUps]
	if err := pool.Await(ctx, caller, 1); err != nil {
		return nil, err
	}
	return func() { pool.Give(caller, 1) }, nil
}
