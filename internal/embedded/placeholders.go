package embedded

import (
	"strings"

	"github.com/truora/minidyn/interpreter/language"
)

// tokensOf splits an expression with the engine's lexer.
func tokensOf(expression string) []language.Token {
	var all []language.Token
	for l := language.NewLexer(expression); ; {
		t := l.NextToken()
		if t.Type == language.EOF {
			return all
		}
		all = append(all, t)
	}
}

// checkPlaceholders verifies that the expressions use exactly the declared placeholders and no
// reserved words. The engine verifies less. It returns a ValidationException.
func checkPlaceholders(names map[string]string, values record, expressions ...*string) error {
	used := map[string]bool{}
	for _, e := range expressions {
		if e == nil {
			continue
		}
		all := tokensOf(*e)
		if len(all) == 0 {
			return invalid("Invalid expression: The expression can not be empty")
		}
		for i, t := range all {
			used[t.Literal] = true
			_, named := names[t.Literal]
			_, valued := values[t.Literal]
			switch {
			case t.Type != language.IDENT:
			case t.Literal[0] == '#' && !named:
				return invalid("An expression attribute name used in the document path is not defined; attribute name: %s", t.Literal)
			case t.Literal[0] == ':' && !valued:
				return invalid("An expression attribute value used in expression is not defined; attribute value: %s", t.Literal)
			case i+1 < len(all) && all[i+1].Type == language.LPAREN: // a function
			case language.IsReservedWord(strings.ToUpper(t.Literal)):
				return invalid("Attribute name is a reserved keyword; reserved keyword: %s", t.Literal)
			}
		}
	}
	for name := range names {
		if !used[name] {
			return invalid("Value provided in ExpressionAttributeNames unused in expressions: keys: {%s}", name)
		}
	}
	for name := range values {
		if !used[name] {
			return invalid("Value provided in ExpressionAttributeValues unused in expressions: keys: {%s}", name)
		}
	}
	return nil
}

// usedIn returns the declared placeholders that an expression uses.
func usedIn[V any](expression *string, declared map[string]V) map[string]V {
	if expression == nil {
		return nil
	}
	part := map[string]V{}
	for _, t := range tokensOf(*expression) {
		if v, ok := declared[t.Literal]; ok {
			part[t.Literal] = v
		}
	}
	return part
}
