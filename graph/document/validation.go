package document

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/ordergraph/ordergraph/graph/errcode"
)

// validate returns the errors of a document that is within its limits, at most MaxErrors. It also
// fills in the definitions in the document's AST, so it must run before requests share the
// document. Without introspection, a document may not select __schema and __type. With hideSchema,
// messages reveal nothing of the schema.
//
// The rules are gqlparser's, with four exceptions. Cyclic fragments and the depth of introspection
// are checked in size.go. Fields that cannot be merged are found by overlaps, in time proportional
// to the expanded document. The library's rule compares all pairs of fields. The root of a
// subscription is checked by singleRootField.
func validate(schema *ast.Schema, document *ast.QueryDocument, introspection, hideSchema bool, extra ...core.Rule) gqlerror.List {
	errs := applyRules(schema, document, introspection, hideSchema, extra...)
	if len(errs) == 0 {
		errs = findFieldConflicts(schema, document)
	}
	if len(errs) == 0 && len(document.Operations) > 1 {
		clearVariableDefinitions(schema, document)
	}
	return errs
}

// clearVariableDefinitions removes the definitions of variables from their uses. The uses in a
// fragment refer to the last operation that spreads the fragment, and the library would apply the
// default of that operation's variable in all operations. Coerced variables have the defaults of
// their own operation, so the definitions are no longer needed.
func clearVariableDefinitions(schema *ast.Schema, document *ast.QueryDocument) {
	events := &core.Events{}
	events.OnValue(func(_ *core.Walker, v *ast.Value) { v.VariableDefinition = nil })
	core.Walk(schema, document, events)
}

// stopWalk is the panic value that ends the validation when it has found MaxErrors errors. An error
// can cost more than the field that it is about: the library searches for similar names, and quotes
// the document.
type stopWalk struct{}

func applyRules(schema *ast.Schema, document *ast.QueryDocument, introspection, hideSchema bool, extra ...core.Rule) (errs gqlerror.List) {
	defer func() {
		if stopped := recover(); stopped != nil {
			if _, ok := stopped.(stopWalk); !ok {
				panic(stopped)
			}
		}
	}()
	events := &core.Events{}
	calls := 0
	for _, rule := range append(ruleSet(introspection, hideSchema), extra...) {
		rule.RuleFunc(events, func(options ...core.ErrorOption) {
			err := &gqlerror.Error{Rule: rule.Name}
			for _, option := range options {
				option(err)
			}
			if redacted := redactedMessages[rule.Name]; redacted != "" && hideSchema {
				err.Message = redacted
			}
			err.Message = errcode.Excerpt(err.Message, maxMessage)
			// An error in a fragment is found in the fragment and in each operation that spreads it.
			if !slices.ContainsFunc(errs, func(known *gqlerror.Error) bool {
				return known.Message == err.Message && slices.Equal(known.Locations, err.Locations)
			}) {
				errs = append(errs, err)
			}
			if calls++; len(errs) == errcode.MaxErrors || calls == 10*errcode.MaxErrors {
				panic(stopWalk{})
			}
		})
	}
	core.Walk(schema, document, events)
	return errs
}

// ruleSet returns the validation rules. It returns a new slice for each call, so the caller may
// append to the slice.
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
		singleRootField,
	}
	if !introspection {
		set = append(set, introspectionOff)
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

// introspectionOff is the rule that rejects __schema and __type.
var introspectionOff = core.Rule{
	Name: "IntrospectionOff",
	RuleFunc: func(events *core.Events, add core.AddErrFunc) {
		events.OnField(func(_ *core.Walker, f *ast.Field) {
			if f.Name == "__schema" || f.Name == "__type" {
				add(core.Message("introspection is disabled on this server: leave out %s, and ask the server's operator for the schema", f.Name), core.At(f.Position),
					func(err *gqlerror.Error) { err.Extensions = map[string]any{"code": errcode.IntrospectionOff} })
			}
		})
	},
}

// redactedMessages are the messages for callers who may not see the schema. They replace messages
// of rules that contain names of types, fields or arguments that the client did not send.
var redactedMessages = map[string]string{
	rules.FieldsOnCorrectTypeRuleWithoutSuggestions.Name: "this field does not exist here",
	rules.FragmentsOnCompositeTypesRule.Name:             "a fragment cannot be on this type",
	rules.KnownArgumentNamesRuleWithoutSuggestions.Name:  "this argument does not exist here",
	rules.PossibleFragmentSpreadsRule.Name:               "this fragment can never apply here",
	rules.ProvidedRequiredArgumentsRule.Name:             "a required argument is missing here",
	rules.ScalarLeafsRuleWithoutSuggestions.Name:         "this field requires a selection, or does not allow one",
	rules.ValuesOfCorrectTypeRuleWithoutSuggestions.Name: "this value does not have the type that is expected here",
	rules.VariablesInAllowedPositionRule.Name:            "this variable does not have the type that is expected here",
}
