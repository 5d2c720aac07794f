// Package mcptool describes GraphQL operations as tools of the Model Context Protocol (MCP), which
// agents call. Within the module, it imports graph, graph/bound, graph/document and internal/price.
//
// A query or a mutation is a tool. The variables of the operation are the tool's arguments. The
// description of the tool is the comment before the operation.
package mcptool

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/access"
	"github.com/ordergraph/ordergraph/graph"
	"github.com/ordergraph/ordergraph/graph/bound"
	"github.com/ordergraph/ordergraph/graph/document"
	"github.com/ordergraph/ordergraph/internal/price"
)

//go:embed standard.graphql
var standard string

// Standard returns the documents of a server without trusted documents. They contain only queries. A
// document is trusted only if it has an ID, so the IDs are empty.
func Standard() (all []document.TrustedDocument) {
	for text := range strings.SplitSeq(standard, "\n\n") {
		all = append(all, document.TrustedDocument{Text: text})
	}
	return all
}

// Tool is an operation that agents can call.
type Tool struct {
	// Definition is the description of the tool that clients receive.
	Definition *mcp.Tool
	// Size is the length of Definition as JSON, in bytes.
	Size int
	// Permissions contains the permissions that a caller needs.
	Permissions []access.Permission

	request graph.Request
	// variables contains the names of the operation's variables.
	variables []string
	// keys contains the arguments that must contain an idempotency key. Each of them is a variable,
	// and possibly the field of its input object.
	keys [][]string
	// userErrors contains the response names of the mutations, each with the response name of its user
	// errors.
	userErrors [][2]string
}

// CostKey is the name of the maximum cost in the metadata of a tool (_meta).
const CostKey = "ordergraph/maximumCost"

// cost is the maximum cost of one call. The JSON names are the same as in bound.Bound.
type cost struct {
	Requests   int         `json:"requests"`
	ReadUnits  float64     `json:"readUnits"`
	WriteUnits float64     `json:"writeUnits"`
	Dollars    json.Number `json:"dollars"`
}

// maxName is the maximum length of a tool's name. The protocol allows 128 bytes, but some clients allow
// only 64.
const maxName = 64

// invalidInName matches what the protocol does not allow in a tool's name.
var invalidInName = regexp.MustCompile(`[^A-Za-z0-9_.-]`)

// All returns the tools for documents in order. It omits subscriptions and documents that the executor
// would reject. For each rejected operation, failures contains the ID of the document and the error.
// shards is the number of shards of the table.
func All(e *graph.Executor, documents []document.TrustedDocument, shards int, prices price.Prices) (tools []*Tool, failures []string) {
	named := map[string]int{}
	for _, d := range documents {
		for _, o := range e.CheckDocuments([]document.TrustedDocument{d}, shards) {
			if len(o.Errors) > 0 {
				failures = append(failures, fmt.Sprintf("%.100s: %.300s", d.ID, o.Errors[0].Message))
			} else if o.Definition.Operation != ast.Subscription {
				t := newTool(e.Schema(), d, o, prices)
				tools, named[t.Definition.Name] = append(tools, t), named[t.Definition.Name]+1
			}
		}
	}
	for _, t := range tools {
		// Documents of several versions of a client can have the same name. Then each name gets a suffix
		// that is the same on all servers.
		if name := t.Definition.Name; named[name] > 1 || len(name) > maxName {
			hash := sha256.Sum256([]byte(t.request.DocumentID + t.request.Query + "\x00" + t.request.OperationName))
			t.Definition.Name = fmt.Sprintf("%s_%x", name[:min(len(name), maxName-9)], hash[:4])
		}
		text, _ := json.Marshal(t.Definition) // it contains only strings, numbers and JSON
		t.Size = len(text)
	}
	return tools, failures
}

func newTool(schema *ast.Schema, d document.TrustedDocument, o graph.CheckedOperation, prices price.Prices) *Tool {
	t := &Tool{Permissions: o.Permissions, request: graph.Request{OperationName: o.Name, DocumentID: d.ID}}
	if d.ID == "" {
		t.request.Query = d.Text
	}
	query := o.Definition.Operation == ast.Query
	idempotent, additive := true, true
	for _, f := range rootFields(o.Definition.SelectionSet) {
		if query {
			break
		}
		key, hasKey := keyArgument(schema, f)
		if len(key) > 0 {
			t.keys = append(t.keys, key)
		}
		idempotent = idempotent && hasKey
		additive = additive && isAdditive(f.Name)
		for _, child := range rootFields(f.SelectionSet) {
			if child.Name == "userErrors" {
				t.userErrors = append(t.userErrors, [2]string{f.Alias, child.Alias})
			}
		}
	}
	for _, v := range o.Definition.VariableDefinitions {
		t.variables = append(t.variables, v.Variable)
	}
	dollars := prices.Dollars(price.Units{Read: o.Bound.ReadUnits, Write: o.Bound.WriteUnits}, 1).FloatString(15)
	c := cost{o.Bound.Requests, o.Bound.ReadUnits, o.Bound.WriteUnits, json.Number(strings.TrimSuffix(strings.TrimRight(dollars, "0"), "."))}
	// Marshaling the schema takes much longer than copying its JSON to each list of the tools.
	arguments, _ := json.Marshal(t.inputSchema(schema, o.Definition))
	destructive, openWorld := !query && !additive, false
	t.Definition = &mcp.Tool{
		Meta: mcp.Meta{CostKey: c}, Name: invalidInName.ReplaceAllString(cmp.Or(o.Name, d.Name, d.ID), "_"), Description: describe(schema, o.Definition) + " " + c.sentence(prices),
		InputSchema: json.RawMessage(arguments),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: query, IdempotentHint: idempotent, DestructiveHint: &destructive, OpenWorldHint: &openWorld},
	}
	return t
}

// rootFields returns the fields of a selection set, including those in fragments.
func rootFields(set ast.SelectionSet) (fields []*ast.Field) {
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			if !strings.HasPrefix(s.Name, "__") {
				fields = append(fields, s)
			}
		case *ast.InlineFragment:
			fields = append(fields, rootFields(s.SelectionSet)...)
		case *ast.FragmentSpread:
			fields = append(fields, rootFields(s.Definition.SelectionSet)...)
		}
	}
	return fields
}

// isAdditive reports whether a mutation only adds something. It depends on the verb in the name.
func isAdditive(mutation string) bool {
	return slices.ContainsFunc([]string{"create", "place", "add", "record", "request", "hire"}, func(verb string) bool { return strings.HasPrefix(mutation, verb) })
}

// idempotencyKey is the name of the input field that makes a mutation idempotent.
const idempotencyKey = "idempotencyKey"

// keyArgument finds the idempotency key of a mutation. If the document itself contains the key,
// argument is empty. ok is false if a repeated call can repeat the change.
func keyArgument(schema *ast.Schema, f *ast.Field) (argument []string, ok bool) {
	input := f.Arguments.ForName("input")
	if input == nil || schema.Types[f.Definition.Arguments.ForName("input").Type.Name()].Fields.ForName(idempotencyKey) == nil {
		return nil, false
	}
	if input.Value.Kind == ast.Variable {
		return []string{input.Value.Raw, idempotencyKey}, true
	}
	key := input.Value.Children.ForName(idempotencyKey)
	switch {
	case key == nil || key.Kind == ast.NullValue:
		return nil, false
	case key.Kind == ast.Variable:
		return []string{key.Raw}, true
	}
	return nil, true
}

// describe returns the description of an operation, or the comment before it. If both are missing, it
// returns the descriptions of the operation's fields in the schema.
func describe(schema *ast.Schema, o *ast.OperationDefinition) string {
	var lines []string
	if o.Comment != nil {
		for _, c := range o.Comment.List {
			lines = append(lines, c.Text())
		}
	}
	text := cmp.Or(oneLine(o.Description), oneLine(strings.Join(lines, " ")))
	if text == "" {
		root := schema.Query
		if o.Operation == ast.Mutation {
			root = schema.Mutation
		}
		for _, f := range rootFields(o.SelectionSet) {
			summary, _, _ := strings.Cut(root.Fields.ForName(f.Name).Description, "\n\n")
			text = oneLine(text + " " + f.Name + ": " + summary)
		}
	}
	if text != "" && !strings.ContainsRune(".!?", rune(text[len(text)-1])) {
		text += "."
	}
	return text
}

// oneLine replaces each sequence of spaces and line breaks with one space.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// sentence returns the last sentence of a tool's description.
func (c cost) sentence(prices price.Prices) string {
	if max(c.ReadUnits, c.WriteUnits) >= bound.Unbounded {
		return "The maximum cost of a call is unknown."
	}
	units := strconv.FormatFloat(c.ReadUnits, 'f', -1, 64) + " read units"
	if c.WriteUnits > 0 {
		units += " and " + strconv.FormatFloat(c.WriteUnits, 'f', -1, 64) + " write units"
	}
	return fmt.Sprintf("Maximum cost of a call: %s of DynamoDB, which cost $%s in %s.", units, c.Dollars, prices.Region)
}

// Request returns the GraphQL request of a call. If the arguments do not fit the tool, it returns a
// message for the caller. The executor checks the types of the arguments later.
func (t *Tool) Request(arguments map[string]any) (r graph.Request, problem string) {
	for name := range arguments {
		if !slices.Contains(t.variables, name) {
			return r, fmt.Sprintf("the tool has no argument %.100q: its arguments are %q", name, t.variables)
		}
	}
	for _, path := range t.keys {
		var value any = arguments
		for _, name := range path {
			object, _ := value.(map[string]any)
			value = object[name]
		}
		if value == nil {
			return r, fmt.Sprintf("the argument %s is missing: send a new UUID for each new change, and the same UUID to repeat a call", strings.Join(path, "."))
		}
	}
	r = t.request
	r.Variables = arguments
	return r, ""
}

// HasUserErrors reports whether the data of a response contains user errors.
func (t *Tool) HasUserErrors(data []byte) bool {
	if len(t.userErrors) == 0 {
		return false
	}
	var payloads map[string]map[string]json.RawMessage
	if json.Unmarshal(data, &payloads) != nil {
		return false
	}
	return slices.ContainsFunc(t.userErrors, func(path [2]string) bool {
		found := payloads[path[0]][path[1]]
		return len(found) > 0 && string(found) != "[]" && string(found) != "null"
	})
}
