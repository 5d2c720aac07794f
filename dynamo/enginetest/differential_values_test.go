package enginetest_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// otherAttributes has the attributes that are in no key.
var otherAttributes = []attribute{
	{"n", "N"}, {"n2", "N"}, {"s", "S"}, {"s2", "S"}, {"b", "B"}, {"m", "M"}, {"m2", "M"}, {"l", "L"}, {"l2", "L"},
	{"ss", "SS"}, {"ns", "NS"}, {"bs", "BS"}, {"t", "BOOL"}, {"u", "NULL"}, {"size", "N"}, {"a.b", "S"}, {"name", "S"},
}

// attribute draws an attribute that an expression may use.
func (g *generator) attribute() attribute {
	keys := g.schema.keys()
	if g.projected != nil {
		all := slices.DeleteFunc(slices.Concat(otherAttributes, keys), func(a attribute) bool { return !slices.Contains(g.projected, a.name) })
		return all[g.number(len(all))]
	}
	if g.rarely(8) {
		return keys[g.number(len(keys))]
	}
	return otherAttributes[g.number(len(otherAttributes))]
}

// key draws a key of the table. It is rarely invalid.
func (g *generator) key() object {
	key := object{}
	for _, a := range g.schema.key {
		key[a.name] = g.keyValue(a)
	}
	if g.rarely(80) {
		last := g.schema.key[len(g.schema.key)-1].name
		switch g.number(3) {
		case 0:
			delete(key, last)
		case 1:
			key["x"] = object{"S": "x"}
		case 2:
			key[last] = g.value(2)
		}
	}
	return key
}

// keyValue draws the value of a key attribute. It is rarely invalid.
func (g *generator) keyValue(a attribute) object {
	switch {
	case !g.rarely(120):
		return g.validKeyValue(a)
	case a.kind == "S" && g.number(2) == 1:
		return object{"S": strings.Repeat("x", 1023+g.number(3)+1024*g.number(2))}
	case a.kind == "N":
		return g.value(2)
	}
	return object{a.kind: ""}
}

// validKeyValue draws one of few valid values of a key attribute.
func (g *generator) validKeyValue(a attribute) object {
	number := g.number(3)
	if strings.HasPrefix(a.name, "s") {
		number = g.number(5)
	}
	switch a.kind {
	case "S":
		// The code units of UTF-16 have another order than the bytes of UTF-8.
		return object{"S": []string{"a", "ab", "a\x00b", "\uFFFD", "\U0001F600"}[number]}
	case "B":
		return object{"B": encode([]string{"\x00", "\x00\xff", "\x00\x00", "\xff", "a"}[number])}
	}
	n := []string{"1", "-2", "10", "0.5", "-1e-20"}[number]
	if n == "1" && !g.severalKeys { // exclusion 2
		n = g.pick("1", "1.0", "100e-2")
	}
	return object{"N": n}
}

func encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// item draws an item. It is rarely invalid.
func (g *generator) item() object {
	item := g.key()
	for _, a := range g.schema.keys() {
		if item[a.name] == nil && g.number(4) < 3 && !has(g.schema.key, a.name) {
			item[a.name] = g.keyValue(a)
		}
	}
	for _, a := range otherAttributes {
		if g.number(3) > 0 {
			item[a.name] = g.typed(a.kind, 3)
		}
	}
	switch g.number(150) {
	case 50: // near the maximum of 400 KB
		g.schema.large = true
		item = g.key()
		item["x"] = object{"S": strings.Repeat("x", 400<<10-g.number(40))}
	case 75, 76:
		kilobytes := 1 + g.number(300)
		g.schema.large = g.schema.large || kilobytes > 50
		item["x"] = object{"S": strings.Repeat("x", 1000*kilobytes)}
	case 100: // near the maximum of 32 levels
		nested := object{"L": []any{}}
		for range 29 + g.number(4) {
			nested = object{"L": []any{nested}}
		}
		item["x"] = nested
	}
	return item
}

func (g *generator) kind() string {
	return g.pick("S", "N", "B", "BOOL", "NULL", "M", "L", "SS", "NS", "BS")
}

// value draws a value of any type, with lists and maps up to a depth.
func (g *generator) value(depth int) object { return g.ofKind(g.kind(), depth) }

// typed draws a value that is rarely of another type.
func (g *generator) typed(kind string, depth int) object {
	if g.rarely(25) {
		kind = g.kind()
	}
	return g.ofKind(kind, depth)
}

// elementKinds has the elements of maps and their usual types.
var elementKinds = map[string]string{"a": "N", "b": "L", "c": "M"}

func (g *generator) ofKind(kind string, depth int) object {
	switch kind {
	case "S":
		return object{"S": g.text()}
	case "N":
		return object{"N": g.decimal()}
	case "B":
		return object{"B": g.binary()}
	case "BOOL":
		return object{"BOOL": g.number(2) == 1}
	case "NULL":
		return object{"NULL": true}
	case "M":
		elements := object{}
		for range g.number(4) * min(depth, 1) {
			name := g.pick("a", "b", "c")
			elements[name] = g.typed(elementKinds[name], depth-1)
		}
		return object{"M": elements}
	case "L":
		elements := []any{}
		for range g.number(4) * min(depth, 1) {
			elements = append(elements, g.value(depth-1))
		}
		return object{"L": elements}
	}
	return object{kind: g.set(kind)}
}

// set draws the elements of a set. It is rarely empty, and rarely has an element twice.
func (g *generator) set(kind string) []any {
	draw := map[string]func() string{"SS": g.text, "NS": g.decimal, "BS": g.binary}[kind]
	set := []any{}
	if g.rarely(80) {
		return set
	}
	for range 1 + g.number(3) {
		element := draw()
		twice := slices.ContainsFunc(set, func(e any) bool { return canonicalNumber(e.(string)) == canonicalNumber(element) })
		if !twice || g.rarely(40) {
			set = append(set, element)
		}
	}
	return set
}

func (g *generator) text() string {
	return g.pick("a", "ab", "abc", "b", "", "ä", "\U0001F600", "10", "S")
}

func (g *generator) binary() string { return encode(g.pick("a", "ab", "\x00", "", "\xff\xfe", "b")) }

// decimal draws a number in any notation. It is rarely invalid.
func (g *generator) decimal() string {
	if g.rarely(200) {
		return g.pick("1e126", "1e-131", "123456789012345678901234567890123456789", "x", "", "NaN", "1e", "0x1", " 1")
	}
	switch g.number(8) {
	case 3:
		return g.pick("1e125", "-1e125", "9.9999999999999999999999999999999999999E+125", "1e-130", "-1E-130", "12345678901234567890123456789012345678",
			"99999999999999999999999999999999999999", "-0", "1e3", "0.10", "00012", "1.50", "+5", "100e-2")
	case 5:
		return g.anyDecimal()
	}
	return g.pick("0", "1", "2", "3", "-1", "10", "1.5", "-0.5", "100")
}

// anyDecimal draws a number with up to 38 digits and an exponent.
func (g *generator) anyDecimal() string {
	text := rapid.StringMatching(`-?[1-9][0-9]{0,18}(\.[0-9]{1,18}[1-9])?`).Draw(g.T, "decimal")
	if g.rarely(3) {
		text += fmt.Sprint("e", rapid.IntRange(-80, 80).Draw(g.T, "exponent"))
	}
	return text
}
