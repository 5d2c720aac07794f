package graph

import (
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// validate tells what is wrong with a document. Where clients may not ask for the schema, neither do messages tell of it.
func validate(schema *ast.Schema, document *ast.QueryDocument, _ bool) gqlerror.List {
	return validator.ValidateWithRules(schema, document, rules.NewDefaultRules())
}
