package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/ordergraph/ordergraph/dynamo"
)

// walker executes one query, or the operation of a subscription for one event: it goes through the selected fields in their order, calls the
// resolvers that gqlgen's generated code would call, and appends what they give to the answer. It is for one goroutine, and starts none: the
// plan has read what the fields need, and a resolver that has to wait makes all behind it wait. Why not gqlgen's code, which makes an object in memory of each
// value, and a goroutine of each element of a list: docs/adr/0023-walker.md. What depends on the schema is generated: walk_generated.go.
//
// Both give the same bytes, errors and costs. Here, errors stand in the order of their fields.
type walker struct {
	*walkResolvers
	// ctx is what resolvers get. It knows the walker, and no field context: who needs one asks for fieldContext.
	ctx       context.Context
	variables map[string]any
	// arguments are those of the fields that have some with variables, by walkedField.argument, read when the first of its objects needs them.
	arguments []any
	// resolving is the field whose resolver was called last.
	resolving *walkedField
	// path are the fields that have objects in them, from the root to where the walk is.
	path []step
	// values are how many values the answer has, and pages how many were asked for: what it costs.
	values, pages int
	boundedAnswer
}

// step is a field on the path, and the place in its list; -1 where it has none.
type step struct {
	field *walkedField
	index int
}

// mark is a place in the answer to come back to where what follows turns out to be null.
type mark struct{ offset, values int }

func newWalk(ctx context.Context, resolvers *walkResolvers, operation *graphql.OperationContext, tree *walkTree, limit int) *walker {
	w := &walker{walkResolvers: resolvers, variables: operation.Variables, path: make([]step, 0, 16), boundedAnswer: tree.answer(limit)}
	if tree.arguments > 0 {
		w.arguments = make([]any, tree.arguments)
	}
	w.ctx = &walkContext{ctx, w}
	return w
}

// walkContext is the context that resolvers get from a walk.
type walkContext struct {
	context.Context
	walk *walker
}

type walkKey struct{}

// Value is the walk, or what the context before it has.
func (c *walkContext) Value(key any) any {
	if key == (walkKey{}) {
		return c.walk
	}
	return c.Context.Value(key)
}

// walkOf is the walk that calls a resolver, nil where gqlgen's code does.
func walkOf(ctx context.Context) *walker {
	w, _ := ctx.Value(walkKey{}).(*walker)
	return w
}

// query executes a query, and returns its data. All of them are null where a field of the root is and must not be.
func (w *walker) query(set *walkedSet, size *answerSize) []byte {
	w.out = append(w.out, '{')
	w.values += set.again
	valid, counted := true, 0
	for i := range set.fields {
		f := &set.fields[i]
		w.begin(f)
		from, written := w.offset(), w.root(f)
		switch {
		case !written:
			valid = false
		case f.number != typenameNumber && !w.isNull(from):
			counted += w.offset() - from
		}
	}
	if !valid {
		return []byte("null")
	}
	size.take(counted)
	w.out = append(w.out, '}')
	return w.out
}

// root writes the value of a field of Query. No resolver's panic comes as far: those are the walker's own.
func (w *walker) root(f *walkedField) (written bool) {
	from := w.here()
	defer func() {
		if panicked := recover(); panicked != nil {
			w.recovered(w.pathContext(f), panicked)
			w.path = w.path[:0]
			w.backTo(from)
			written = !f.field.Definition.Type.NonNull && w.null()
		}
	}()
	return w.fieldQuery(f)
}

// here marks where the next value begins.
func (w *walker) here() mark { return mark{w.offset(), w.values} }

// backTo forgets what was written and counted behind a mark.
func (w *walker) backTo(p mark) {
	w.truncate(p.offset)
	w.values = p.values
}

// begin begins a field: with its name, and counted as a value.
func (w *walker) begin(f *walkedField) {
	w.values++
	w.out = append(w.out, f.key...)
}

// open begins an object.
func (w *walker) open(set *walkedSet) mark {
	from := w.here()
	w.values += set.again
	w.out = append(w.out, '{')
	return from
}

// close ends an object; one that is not valid is null, and nothing of it is left.
func (w *walker) close(from mark, valid bool) bool {
	if !valid {
		w.backTo(from)
		return false
	}
	w.out = append(w.out, '}')
	w.bound()
	return true
}

// enter makes a field part of the path of those inside it, and leave ends that.
func (w *walker) enter(f *walkedField) { w.path = append(w.path, step{f, -1}) }

func (w *walker) leave() { w.path = w.path[:len(w.path)-1] }

// openList begins a list, whose elements have places on the path.
func (w *walker) openList(f *walkedField) mark {
	from := w.here()
	w.enter(f)
	w.out = append(w.out, '[')
	return from
}

// element begins an element of a list.
func (w *walker) element(i int) {
	w.path[len(w.path)-1].index = i
	w.values++
	if i > 0 {
		w.out = append(w.out, ',')
	}
}

// closeList ends a list; one that is not valid is null, and nothing of it is left.
func (w *walker) closeList(from mark, valid bool) bool {
	w.leave()
	if !valid {
		w.backTo(from)
		return false
	}
	w.out = append(w.out, ']')
	w.bound()
	return true
}

// null writes that a value is null.
func (w *walker) null() bool {
	w.out = append(w.out, "null"...)
	return true
}

// argumentsReader reads the arguments of a field as its resolver wants them.
type argumentsReader func(ctx context.Context, generated *executionContext, given map[string]any) (any, error)

// argumentsOf are the arguments of a field; they are read once, whatever the number of its objects. Where they cannot be read, each object
// has an error of its own.
func (w *walker) argumentsOf(f *walkedField) (any, bool) {
	if f.given != nil {
		return f.given, true
	}
	if read := w.arguments[f.argument]; read != nil {
		return read, true
	}
	read, err := f.read(w.ctx, w.generated, f.field.ArgumentMap(w.variables))
	if err != nil {
		// Once more, for an error that knows its place.
		ctx := w.fieldContext(f)
		_, err = f.read(ctx, w.generated, f.field.ArgumentMap(w.variables))
		graphql.GetOperationContext(ctx).Error(ctx, err)
		return nil, false
	}
	w.arguments[f.argument] = read
	return read, true
}

// event executes the operation of a subscription for an event, and returns its data. All fields of Subscription are an OrderUpdate!, so they are
// null as a whole where the update cannot be.
func (w *walker) event(set *walkedSet, size *answerSize, change *dynamo.OrderChange) []byte {
	f := &set.fields[0]
	w.out = append(w.out, '{')
	w.begin(f)
	w.enter(f)
	if !w.walkOrderUpdate(f.set, change) {
		return []byte("null")
	}
	w.out = append(w.out, '}')
	size.take(w.offset())
	return w.out
}

// newWalkers returns what walks need that call resolvers.
func newWalkers(resolvers ResolverRoot, schema *executableSchema) *walkResolvers {
	return newWalkResolvers(resolvers, newExecutionContext(&graphql.OperationContext{}, schema, nil))
}

// walkTree is the tree by which an operation is walked. Nil means that it is for gqlgen's code: it is a mutation, whose payloads read what nobody
// could plan, or asks for the schema, or selects very much.
func (e *Executor) walkTree(document *document, operation *graphql.OperationContext) *walkTree {
	if operation.Operation.Operation == ast.Mutation || !e.scope.plans || e.walkers == nil {
		// Without a plan, it is the goroutines of gqlgen's code that make many reads one request.
		return nil
	}
	return document.walkTree(e.walkers, operation)
}

// walk executes an operation by its tree.
func (e *Executor) walk(ctx context.Context, operation *graphql.OperationContext, tree *walkTree, execute func(*walker) []byte) *graphql.Response {
	w := newWalk(ctx, e.walkers, operation, tree, e.limits.Answer)
	data := execute(w)
	tree.wrote(len(data))
	paymentOf(ctx).walked(w)
	return &graphql.Response{Data: data}
}
