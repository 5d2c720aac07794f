package document

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/ordergraph/ordergraph/graph/errcode"
)

// validate validates a document. It returns at most errcode.MaxErrors errors. Requests must not
// share the document before validate returns, because validate modifies the AST.
func validate(schema *ast.Schema, s scalars, document *ast.QueryDocument, introspection, hideSchema bool, extra ...core.Rule) gqlerror.List {
	errs := applyRules(schema, s, document, introspection, hideSchema, extra...)
	if len(errs) == 0 {
		// gqlparser's own rule would take quadratic time.
		errs = findFieldConflicts(schema, document)
	}
	if len(errs) == 0 && len(document.Operations) > 1 {
		clearVariableDefinitions(schema, document)
	}
	return errs
}

// clearVariableDefinitions removes the variable definitions that gqlparser has stored at the uses
// of variables. If several operations spread a fragment, the stored definition can belong to the
// wrong operation. Its default value would then be wrong, too.
func clearVariableDefinitions(schema *ast.Schema, document *ast.QueryDocument) {
	events := &core.Events{}
	events.OnValue(func(_ *core.Walker, v *ast.Value) { v.VariableDefinition = nil })
	core.Walk(schema, document, events)
}

// errorLimitReached is the panic value that ends the validation after too many errors. Without a
// limit, the validation of a document with many errors would take too long.
type errorLimitReached struct{}

func applyRules(schema *ast.Schema, s scalars, document *ast.QueryDocument, introspection, hideSchema bool, extra ...core.Rule) (errs gqlerror.List) {
	defer func() {
		if stopped := recover(); stopped != nil {
			if _, ok := stopped.(errorLimitReached); !ok {
				panic(stopped)
			}
		}
	}()
	events := &core.Events{}
	calls := 0
	for _, rule := range slices.Concat([]core.Rule{s.numberLiteralsRule()}, ruleSet(introspection, hideSchema), []core.Rule{s.literalsRule(hideSchema)}, extra) {
		rule.RuleFunc(events, func(options ...core.ErrorOption) {
			err := &gqlerror.Error{Rule: rule.Name}
			for _, option := range options {
				option(err)
			}
			if redacted := redactedMessages[rule.Name]; redacted != "" && hideSchema {
				err.Message = redacted
			}
			err.Message = errcode.Excerpt(err.Message, maxMessage)
			// gqlparser reports an error in a fragment several times: once for the fragment, and
			// once for each operation that spreads it. Only the first of these errors is added. The rule
			// scalarLiterals reports only values that gqlparser's rules accept.
			if !slices.ContainsFunc(errs, func(known *gqlerror.Error) bool {
				return (known.Message == err.Message || rule.Name == scalarLiterals) && slices.Equal(known.Locations, err.Locations)
			}) {
				errs = append(errs, err)
			}
			if calls++; len(errs) == errcode.MaxErrors || calls == 10*errcode.MaxErrors {
				panic(errorLimitReached{})
			}
		})
	}
	core.Walk(schema, document, events)
	return errs
}

// ruleSet returns the validation rules in a new slice. size.go checks cyclic fragments and deep
// introspection, and field_conflicts.go checks field conflicts.
func ruleSet(introspection, hideSchema bool) []core.Rule {
	set := []core.Rule{
		rules.FragmentsOnCompositeTypesRule,
		rules.KnownDirectivesRule,
		rules.KnownFragmentNamesRule,
		rules.KnownRootTypeRule,
		rules.LoneAnonymousOperationRule,
		rules.NoUndefinedVariablesRule,
		rules.NoUnusedFragmentsRule,
		rules.NoUnusedVariablesRule,
		rules.PossibleFragmentSpreadsRule,
		rules.ProvidedRequiredArgumentsRule,
		rules.UniqueArgumentNamesRule,
		rules.UniqueDirectivesPerLocationRule,
		rules.UniqueFragmentNamesRule,
		rules.UniqueInputFieldNamesRule,
		rules.UniqueOperationNamesRule,
		rules.UniqueVariableNamesRule,
		rules.VariablesAreInputTypesRule,
		rules.VariablesInAllowedPositionRule,
		singleRootFieldRule,
	}
	if !introspection {
		set = append(set, introspectionOffRule)
	}
	if hideSchema {
		return append(set,
			rules.FieldsOnCorrectTypeRuleWithoutSuggestions, rules.KnownArgumentNamesRuleWithoutSuggestions,
			rules.KnownTypeNamesRuleWithoutSuggestions, rules.ScalarLeafsRuleWithoutSuggestions,
			rules.ValuesOfCorrectTypeRuleWithoutSuggestions)
	}
	return append(set, rules.FieldsOnCorrectTypeRule, rules.KnownArgumentNamesRule, rules.KnownTypeNamesRule,
		rules.ScalarLeafsRule, rules.ValuesOfCorrectTypeRule)
}

// introspectionOffRule rejects documents that select __schema or __type.
var introspectionOffRule = core.Rule{
	Name: "IntrospectionOff",
	RuleFunc: func(events *core.Events, add core.AddErrFunc) {
		events.OnField(func(_ *core.Walker, f *ast.Field) {
			if f.Name == "__schema" || f.Name == "__type" {
				add(core.Message("introspection is disabled on this server: send no %s, and ask the server's operator for the schema", f.Name), core.At(f.Position),
					func(err *gqlerror.Error) { err.Extensions = map[string]any{"code": errcode.IntrospectionOff} })
			}
		})
	},
}

// redactedMessages contains the error messages for callers who may not see the schema. The keys are
// the names of gqlparser's rules. The original messages of these rules would reveal names of types,
// fields or arguments.
var redactedMessages = map[string]string{
	rules.FieldsOnCorrectTypeRuleWithoutSuggestions.Name: "this field does not exist on its parent type",
	rules.FragmentsOnCompositeTypesRule.Name:             "a fragment cannot have this type condition",
	rules.KnownArgumentNamesRuleWithoutSuggestions.Name:  "this argument does not exist on this field or directive",
	rules.PossibleFragmentSpreadsRule.Name:               "this fragment can never apply to its parent type",
	rules.ProvidedRequiredArgumentsRule.Name:             "a required argument of this field or directive is missing",
	rules.ScalarLeafsRuleWithoutSuggestions.Name:         "this field must have a selection set, or must not have one",
	rules.ValuesOfCorrectTypeRuleWithoutSuggestions.Name: "this value does not have the expected type",
	rules.VariablesInAllowedPositionRule.Name:            "this variable does not have the expected type",
}
