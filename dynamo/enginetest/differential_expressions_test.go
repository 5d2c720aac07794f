package enginetest_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// expressions draws the expressions of one request, and collects their placeholders. The tokens of
// an expression are separated by spaces.
type expressions struct {
	*generator
	names, values object
	updated       []string // updated has the top-level attributes that the update changes
	// usesKey reports whether the update changes the table's key, or has a path into a key attribute.
	usesKey bool
}

func (g *generator) expressions() *expressions {
	return &expressions{generator: g, names: object{}, values: object{}}
}

// placeholder matches the placeholders in an expression.
var placeholder = regexp.MustCompile("[#:][a-z0-9]+")

// addTo adds the placeholders of the expressions to a request. Rarely there is one too many or too
// few.
func (e *expressions) addTo(in object) {
	used := map[string]bool{}
	for _, v := range in {
		if text, ok := v.(string); ok {
			for _, name := range placeholder.FindAllString(text, -1) {
				used[name] = true
			}
		}
	}
	for _, of := range []struct {
		member, unused string
		value          any
		all            object
	}{
		{"ExpressionAttributeNames", "#unused", "x", e.names},
		{"ExpressionAttributeValues", ":unused", object{"S": "x"}, e.values},
	} {
		maps.DeleteFunc(of.all, func(name string, _ any) bool { return !used[name] })
		if len(of.all) > 0 && e.rarely(80) {
			names := slices.Sorted(maps.Keys(of.all))
			delete(of.all, names[e.number(len(names))])
		}
		if e.rarely(100) {
			of.all[of.unused] = of.value
		}
		if len(of.all) > 0 {
			in[of.member] = of.all
		}
	}
}

// damaged returns an expression that rarely has a token too many or too few, or two tokens in the
// wrong order. Rarely the expression has about 4 KB, its maximum.
func (e *expressions) damaged(text string) string {
	if e.rarely(300) {
		return text + strings.Repeat(" ", max(0, 4095+e.number(3)-len(text)))
	}
	if !e.rarely(30) {
		return text
	}
	tokens := strings.Fields(text)
	i, j := e.number(len(tokens)), e.number(len(tokens))
	switch e.number(4) {
	case 0:
		tokens = slices.Delete(tokens, i, i+1)
	case 1:
		tokens = slices.Insert(tokens, i, tokens[i])
	case 2:
		tokens = slices.Insert(tokens, i, e.pick("AND", "OR", "NOT", "(", ")", ",", "=", "+", "SET", "a", "[0]", ".", "!", "0", "#", ":"))
	case 3:
		tokens[i], tokens[j] = tokens[j], tokens[i]
	}
	return strings.Join(tokens, " ")
}

// value returns a placeholder for a value.
func (e *expressions) value(v object) string {
	name := fmt.Sprint(":v", len(e.values))
	e.values[name] = v
	return name
}

// name returns a name in a path: the name or a placeholder. Rarely a reserved word has no
// placeholder.
func (e *expressions) name(name string) string {
	plain := name != "size" && name != "a.b" // exclusion 5
	if plain && (name != "name" || e.rarely(40)) && !e.rarely(5) {
		return name
	}
	for known, of := range e.names {
		if of == name {
			return known
		}
	}
	alias := fmt.Sprint("#n", len(e.names))
	e.names[alias] = name
	return alias
}

// path draws a path and the usual type of its value.
func (e *expressions) path() (path, kind string) { return e.pathFrom(e.attribute()) }

// pathFrom draws a path that begins with an attribute.
func (e *expressions) pathFrom(a attribute) (path, kind string) {
	path, kind = e.name(a.name), a.kind
	isKey := has(e.schema.keys(), a.name)
	for range 3 {
		if isKey && e.severalKeys {
			return path, kind // exclusion 4
		}
		switch {
		case kind == "M" && e.number(3) > 0 || e.rarely(30):
			name := e.pick("a", "b", "c")
			path, kind = path+"."+e.name(name), elementKinds[name]
		case kind == "L" && e.number(3) > 0 || e.rarely(30):
			path, kind = fmt.Sprintf("%s[%d]", path, e.number(4)), e.kind()
		default:
			return path, kind
		}
		e.usesKey = e.usesKey || isKey
	}
	return path, kind
}

// pathOf draws a path that usually has values of a type.
func (e *expressions) pathOf(kind string) string {
	path, of := e.path()
	for range 10 {
		if of == kind || e.rarely(20) {
			break
		}
		path, of = e.path()
	}
	return path
}

// condition draws a condition or a filter.
func (e *expressions) condition() string { return e.damaged(e.anyCondition(2)) }

// anyCondition draws a condition with AND, OR, NOT and parentheses up to a depth.
func (e *expressions) anyCondition(depth int) string {
	if depth > 0 {
		switch e.number(10) {
		case 5:
			return e.anyCondition(depth-1) + " AND " + e.anyCondition(depth-1)
		case 6:
			return e.anyCondition(depth-1) + " OR " + e.anyCondition(depth-1)
		case 7:
			return "NOT " + e.anyCondition(depth-1)
		case 8, 9:
			return "( " + e.anyCondition(depth-1) + " )"
		}
	}
	path, kind := e.path()
	switch e.number(12) {
	case 0:
		return "attribute_exists ( " + path + " )"
	case 1:
		return "attribute_not_exists ( " + path + " )"
	case 2:
		return "attribute_type ( " + path + " , " + e.value(object{"S": e.pick(kind, "S", "N", "X")}) + " )"
	case 3:
		return "begins_with ( " + path + " , " + e.operand(e.pick(kind, "S", "B")) + " )"
	case 4:
		of := map[string]string{"SS": "S", "NS": "N", "BS": "B", "L": e.kind()}[kind]
		if of == "" {
			of = e.pick("S", "B", "N")
		}
		return "contains ( " + path + " , " + e.operand(of) + " )"
	case 5:
		return path + " BETWEEN " + e.operand(kind) + " AND " + e.operand(kind)
	case 6:
		operands := []string{e.operand(kind)}
		for range e.number(3) {
			operands = append(operands, e.operand(kind))
		}
		return path + " IN ( " + strings.Join(operands, " , ") + " )"
	case 7:
		return "size ( " + path + " ) " + e.comparator() + " " + e.operand("N")
	case 8:
		return e.operand(kind) + " " + e.comparator() + " " + path
	}
	return path + " " + e.comparator() + " " + e.operand(kind)
}

func (e *expressions) comparator() string { return e.pick("=", "<>", "<", "<=", ">", ">=") }

// operand draws an operand of a condition that usually has a type.
func (e *expressions) operand(kind string) string {
	switch {
	case kind == "N" && e.rarely(6):
		path, _ := e.path()
		return "size ( " + path + " )"
	case e.rarely(5):
		return e.pathOf(kind)
	}
	return e.value(e.typed(kind, 2))
}

// projection draws a projection.
func (e *expressions) projection() string {
	var paths []string
	for range 1 + e.number(3) {
		path, _ := e.path()
		paths = append(paths, path)
	}
	return e.damaged(strings.Join(paths, " , "))
}

// keyCondition is a key condition.
type keyCondition struct {
	text      string
	inclusive bool // inclusive reports whether the condition has an inclusive bound
}

// keyCondition draws a key condition. It is rarely invalid.
func (e *expressions) keyCondition(key []attribute) keyCondition {
	value := func(a attribute) string { return e.value(e.keyValue(a)) }
	operator := "="
	if e.rarely(40) {
		operator = e.comparator()
	}
	partition := e.name(key[0].name) + " " + operator + " " + e.value(e.validKeyValue(key[0]))
	if len(key) == 1 && !e.rarely(20) {
		return keyCondition{e.damaged(partition), true}
	}
	if e.number(2) == 0 {
		return keyCondition{e.damaged(partition), len(key) == 1}
	}
	sort := attribute{"sk", "S"}
	if len(key) == 2 {
		sort = key[1]
	}
	c := keyCondition{text: e.name(sort.name)}
	switch e.number(4) {
	case 0:
		c.text = "begins_with ( " + c.text + " , " + value(sort) + " )"
	case 1:
		c.text += " BETWEEN " + value(sort) + " AND " + value(sort)
		c.inclusive = true
	default:
		operator := e.pick("=", "<", "<=", ">", ">=", "<>")
		if operator == "<>" && !e.rarely(4) {
			operator = "="
		}
		c.text += " " + operator + " " + value(sort)
		c.inclusive = strings.Contains(operator, "=") || len(key) == 1
	}
	if e.rarely(8) {
		c.text = e.damaged(c.text + " AND " + partition)
	} else {
		c.text = e.damaged(partition + " AND " + c.text)
	}
	return c
}

// update draws an update expression.
func (e *expressions) update() string {
	var sections []string
	for _, section := range []string{"SET", "REMOVE", "ADD", "DELETE"} {
		if section == "SET" && e.rarely(4) || section != "SET" && e.number(3) < 2 {
			continue
		}
		actions := []string{e.action(section)}
		for range e.number(3) {
			actions = append(actions, e.action(section))
		}
		sections = append(sections, section+" "+strings.Join(actions, " , "))
	}
	if sections == nil {
		sections = []string{"REMOVE " + e.action("REMOVE")}
	}
	if e.rarely(4) {
		slices.Reverse(sections)
	}
	return e.damaged(strings.Join(sections, " "))
}

// action draws one action of a section. It usually changes an attribute that no other action
// changes.
func (e *expressions) action(section string) string {
	for {
		a := e.attribute()
		if slices.Contains(e.updated, a.name) && !e.rarely(20) {
			continue
		}
		isKey := has(e.schema.keys(), a.name)
		if isKey && (section == "ADD" || section == "DELETE" || has(e.schema.key, a.name) && !e.rarely(6)) {
			continue
		}
		if isKey { // exclusions 6 and 10
			e.updated = append(e.updated, a.name)
			e.usesKey = e.usesKey || has(e.schema.key, a.name)
			if section == "REMOVE" {
				return e.name(a.name)
			}
			return e.name(a.name) + " = " + e.value(e.validKeyValue(a))
		}
		if a.kind == "L" && e.rarely(2) && (section == "SET" || section == "REMOVE") {
			e.updated = append(e.updated, a.name)
			return e.elements(section, e.name(a.name))
		}
		path, kind := e.pathFrom(a)
		isSet := kind == "SS" || kind == "NS" || kind == "BS"
		if !e.rarely(20) && (section == "DELETE" && !isSet || section == "ADD" && !isSet && kind != "N") {
			continue
		}
		e.updated = append(e.updated, a.name)
		switch section {
		case "SET":
			return path + " = " + e.assigned(path, kind)
		case "REMOVE":
			return path
		}
		return path + " " + e.value(e.typed(kind, 1))
	}
}

// elements draws actions on two elements of one list.
func (e *expressions) elements(section, list string) string {
	action := func() string {
		element := fmt.Sprintf("%s[%d]", list, e.number(5))
		if section == "SET" {
			element += " = " + e.value(e.typed("N", 1))
		}
		return element
	}
	return action() + " , " + action()
}

// assigned draws the right side of an assignment to a path.
func (e *expressions) assigned(path, kind string) string {
	operand := func() string {
		switch e.number(6) {
		case 3:
			return path
		case 4:
			return e.pathOf(kind)
		case 5:
			return "if_not_exists ( " + e.pick(path, e.pathOf(kind)) + " , " + e.value(e.typed(kind, 2)) + " )"
		}
		return e.value(e.typed(kind, 2))
	}
	switch {
	case kind == "N" && e.number(2) == 1:
		return operand() + " " + e.pick("+", "-") + " " + operand()
	case kind == "L" && e.number(2) == 1:
		return "list_append ( " + operand() + " , " + operand() + " )"
	}
	return operand()
}
