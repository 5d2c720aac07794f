package graph

import (
	"strings"

	"github.com/ordergraph/ordergraph/commerce"
)

// EventTypeName returns the value of the enum OrderEventType for a type of events.
func EventTypeName(t commerce.EventType) string { return unquote(appendOrderEventType(nil, t)) }

// StatusName returns the value of the enum OrderStatus for a status.
func StatusName(s commerce.Status) string { return unquote(appendOrderStatus(nil, s)) }

func unquote(name []byte) string { return strings.Trim(string(name), `"`) }
