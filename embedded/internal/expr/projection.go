package expr

import (
	"slices"

	"github.com/ordergraph/ordergraph/embedded/internal/attr"
)

// Projection is the list of document paths that a read returns. An empty Projection selects the
// complete item.
type Projection []Path

// ParseProjection parses a projection expression.
func ParseProjection(text string, p *Placeholders) (Projection, error) {
	s, err := newParser(projectionExpression, text, p)
	if err != nil {
		return nil, err
	}
	var paths Projection
	for {
		path, err := s.path()
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
		if !s.symbol(",") {
			s.checkOverlap(paths)
			return paths, s.finish()
		}
	}
}

// Apply returns an item with only the selected values. Selected list elements keep their order, but
// not their indexes.
func (p Projection) Apply(item attr.Item) attr.Item {
	if len(p) == 0 {
		return item
	}
	selected := attr.Item{}
	for name, paths := range groupByName(p) {
		if v, ok := item[name]; ok {
			if v, ok = project(v, paths); ok {
				selected[name] = v
			}
		}
	}
	return selected
}

// groupByName groups paths by the name in their first element, and removes this element from the
// paths. It ignores paths that begin with a list index.
func groupByName(paths []Path) map[string][]Path {
	groups := map[string][]Path{}
	for _, path := range paths {
		if path[0].Index < 0 {
			groups[path[0].Name] = append(groups[path[0].Name], path[1:])
		}
	}
	return groups
}

// project returns the parts of a value that the paths select. If the paths select nothing, it
// returns false.
func project(v attr.Value, paths []Path) (attr.Value, bool) {
	if len(paths[0]) == 0 {
		return v, true
	}
	switch v.Kind {
	case attr.Map:
		selected := attr.Item{}
		for name, rest := range groupByName(paths) {
			if e, ok := v.Map[name]; ok {
				if e, ok = project(e, rest); ok {
					selected[name] = e
				}
			}
		}
		return attr.Value{Kind: attr.Map, Map: selected}, len(selected) > 0
	case attr.List:
		groups := map[int][]Path{}
		var indexes []int
		for _, path := range paths {
			if i := path[0].Index; i >= 0 && i < len(v.List) {
				if groups[i] == nil {
					indexes = append(indexes, i)
				}
				groups[i] = append(groups[i], path[1:])
			}
		}
		slices.Sort(indexes)
		var selected []attr.Value
		for _, i := range indexes {
			if e, ok := project(v.List[i], groups[i]); ok {
				selected = append(selected, e)
			}
		}
		return attr.Value{Kind: attr.List, List: selected}, len(selected) > 0
	}
	return v, false
}

// ApplyOrNone is like Apply, but an empty Projection selects nothing.
func (p Projection) ApplyOrNone(item attr.Item) attr.Item {
	if len(p) == 0 {
		return nil
	}
	return p.Apply(item)
}
