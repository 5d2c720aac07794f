package graph

import (
	"slices"
	"sync/atomic"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/commerce"
)

// operationFacts are what is known of an operation whatever its variables are, found once for all requests that send it. Documents keep them, so
// a request walks through its operation only where they do not decide. They are safe for concurrent use.
type operationFacts struct {
	// permissions are those that its fields need, also fields that @skip or @include may leave out, and those that input fields of its
	// arguments would need.
	permissions []commerce.Permission
	// sizes are the variables that its cost depends on. sized tells that the cost depends on nothing else of a request.
	sizes []string
	sized bool
	// priced is what it cost last.
	priced atomic.Pointer[pricedOperation]
}

// pricedOperation is what an operation costs with sizes of these values.
type pricedOperation struct {
	sizes []any
	cost  int
}

// facts are those of an operation of the document.
func (d *document) facts(a access, operation *ast.OperationDefinition) *operationFacts {
	if known, ok := d.known.Load(operation); ok {
		return known.(*operationFacts)
	}
	f := &factsFinding{access: a, seen: map[string]bool{}, found: &operationFacts{sized: true}}
	f.selections(operation.SelectionSet)
	bytes := factsBytes + len(f.found.permissions)*permissionBytes + len(f.found.sizes)*sizeBytes
	if !d.keep(bytes) {
		return f.found
	}
	known, other := d.known.LoadOrStore(operation, f.found)
	if other { // another request was first
		d.forget(bytes)
	}
	return known.(*operationFacts)
}

// What facts take in memory, with their place among those of the document and what it cost last.
const (
	factsBytes      = 512
	permissionBytes = 2 * 8
	sizeBytes       = 2 * (16 + 16 + 8)
)

// factsFinding walks an operation, each fragment once.
type factsFinding struct {
	access
	seen  map[string]bool
	found *operationFacts
}

func (f *factsFinding) selections(set ast.SelectionSet) {
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			if p, guarded := f.fields[s.Definition]; guarded {
				f.needs(p)
			}
			for _, p := range f.inputsOf[s.Definition] {
				f.needs(p)
			}
			f.arguments(s)
			f.selections(s.SelectionSet)
		case *ast.InlineFragment:
			f.selections(s.SelectionSet)
		case *ast.FragmentSpread:
			if !f.seen[s.Name] {
				f.seen[s.Name] = true
				f.selections(s.Definition.SelectionSet)
			}
		}
	}
}

func (f *factsFinding) needs(p commerce.Permission) {
	if !slices.Contains(f.found.permissions, p) {
		f.found.permissions = append(f.found.permissions, p)
	}
}

// arguments finds what the cost of a field depends on; see costCount.
func (f *factsFinding) arguments(of *ast.Field) {
	for _, a := range of.Arguments {
		if a.Name != "first" && a.Name != "last" && of.Name != entitiesField {
			continue
		}
		switch {
		case of.Name == entitiesField || len(a.Value.Children) > 0:
			f.found.sized = false // the length of a list
		case a.Value.Kind == ast.Variable && !slices.Contains(f.found.sizes, a.Value.Raw):
			f.found.sizes = append(f.found.sizes, a.Value.Raw)
		}
	}
}

// allows tells that somebody may use all fields of the operation, whatever its variables are. Where not, access.check tells which they may not, if
// the request asks for them at all.
func (f *operationFacts) allows(policy commerce.Policy, who commerce.Principal) bool {
	for _, p := range f.permissions {
		if policy.Granted(who, p) == commerce.None {
			return false
		}
	}
	return true
}

// absent stands for a variable that is not given, which is not the same as null.
type absent struct{}

// cost is what the operation costs with these variables, as costs.of counts it. Clients ask for pages of the same sizes again and again, so
// what it cost last is remembered.
func (f *operationFacts) cost(c costs, operation *ast.OperationDefinition, variables map[string]any) int {
	if !f.sized {
		return c.of(operation, variables)
	}
	size := func(i int) any {
		if value, ok := variables[f.sizes[i]]; ok {
			return value
		}
		return absent{}
	}
	if last := f.priced.Load(); last != nil {
		same := true
		for i := range f.sizes {
			same = same && size(i) == last.sizes[i]
		}
		if same {
			return last.cost
		}
	}
	priced := &pricedOperation{cost: c.of(operation, variables)}
	for i := range f.sizes {
		switch value := size(i).(type) {
		case nil, int64, absent:
			priced.sizes = append(priced.sizes, value)
		default:
			return priced.cost // of a type that is not compared
		}
	}
	f.priced.Store(priced)
	return priced.cost
}
