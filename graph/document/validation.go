package document

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/ordergraph/ordergraph/graph/errcode"
)

// validate tells what is wrong with a document that is within limits, up to MaxErrors. It fills in
// the document's definitions, so a document is validated before others see it. Without
// introspection, a document may not ask for the schema; with quiet, messages do not tell of it.
//
// The rules are the library's, but for four: fragments that go in circles and the depth of
// introspection are found when the document is measured (size.go), fields that cannot be
// merged by overlaps (overlaps.go), which takes time in proportion to the document's expanded size,
// where the library's rule compares all with all; and the root of a subscription is held to one
// stream by oneStream (single_stream.go).
func validate(schema *ast.Schema, document *ast.QueryDocument, introspection, quiet bool, more ...core.Rule) gqlerror.List {
	errs := walk(schema, document, introspection, quiet, more...)
	if len(errs) == 0 {
		errs = overlaps(schema, document)
	}
	if len(errs) == 0 && len(document.Operations) > 1 {
		forgetDefinitions(schema, document)
	}
	return errs
}

// forgetDefinitions takes the definitions of variables away from the places where they are used: in
// a fragment they are those of the last operation that spreads it, and the library would take a
// default of that one in all. Coerced variables have their own operation's defaults, so nothing
// needs the definitions any more.
func forgetDefinitions(schema *ast.Schema, document *ast.QueryDocument) {
	events := &core.Events{}
	events.OnValue(func(_ *core.Walker, v *ast.Value) { v.VariableDefinition = nil })
	core.Walk(schema, document, events)
}

// enough ends a walk that has found as many errors as are told. Each can cost more than the field
// that it is about: the library looks for names that are alike, and repeats what was sent.
type enough struct{}

func walk(schema *ast.Schema, document *ast.QueryDocument, introspection, quiet bool, more ...core.Rule) (errs gqlerror.List) {
	defer func() {
		if stopped := recover(); stopped != nil {
			if _, ok := stopped.(enough); !ok {
				panic(stopped)
			}
		}
	}()
	events := &core.Events{}
	calls := 0
	for _, rule := range append(ruleSet(introspection, quiet), more...) {
		rule.RuleFunc(events, func(options ...core.ErrorOption) {
			err := &gqlerror.Error{Rule: rule.Name}
			for _, option := range options {
				option(err)
			}
			if plain := plainly[rule.Name]; plain != "" && quiet {
				err.Message = plain
			}
			err.Message = errcode.Excerpt(err.Message, maxMessage)
			// What a fragment has wrong is found in each operation that spreads it, and in itself.
			if !slices.ContainsFunc(errs, func(told *gqlerror.Error) bool {
				return told.Message == err.Message && slices.Equal(told.Locations, err.Locations)
			}) {
				errs = append(errs, err)
			}
			if calls++; len(errs) == errcode.MaxErrors || calls == 10*errcode.MaxErrors {
				panic(enough{})
			}
		})
	}
	core.Walk(schema, document, events)
	return errs
}

// ruleSet are the rules; they have no state, so each walk takes its own slice of them.
func ruleSet(introspection, quiet bool) []core.Rule {
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
		oneStream,
	}
	if !introspection {
		set = append(set, introspectionOff)
	}
	if quiet {
		return append(set,
			rules.FieldsOnCorrectTypeRuleWithoutSuggestions, rules.KnownArgumentNamesRuleWithoutSuggestions,
			rules.KnownTypeNamesRuleWithoutSuggestions, rules.ScalarLeafsRuleWithoutSuggestions,
			rules.ValuesOfCorrectTypeRuleWithoutSuggestions)
	}
	return append(set, rules.FieldsOnCorrectTypeRule, rules.KnownArgumentNamesRule, rules.KnownTypeNamesRule,
		rules.ScalarLeafsRule, rules.ValuesOfCorrectTypeRule)
}

// introspectionOff refuses to tell the schema.
var introspectionOff = core.Rule{
	Name: "IntrospectionOff",
	RuleFunc: func(events *core.Events, add core.AddErrFunc) {
		events.OnField(func(_ *core.Walker, f *ast.Field) {
			if f.Name == "__schema" || f.Name == "__type" {
				add(core.Message("this server does not tell its schema: leave %s out, and ask its operators for the schema", f.Name), core.At(f.Position),
					func(err *gqlerror.Error) { err.Extensions = map[string]any{"code": errcode.IntrospectionOff} })
			}
		})
	},
}

// plainly are the messages to those who may not ask for the schema, of rules whose own name types,
// fields or arguments that the client did not.
var plainly = map[string]string{
	rules.FieldsOnCorrectTypeRuleWithoutSuggestions.Name: "there is no such field here",
	rules.FragmentsOnCompositeTypesRule.Name:             "a fragment cannot be on this type",
	rules.KnownArgumentNamesRuleWithoutSuggestions.Name:  "there is no such argument here",
	rules.PossibleFragmentSpreadsRule.Name:               "this fragment is never of the type that is asked for here",
	rules.ProvidedRequiredArgumentsRule.Name:             "an argument is missing here",
	rules.ScalarLeafsRuleWithoutSuggestions.Name:         "this field needs a selection, or has one and takes none",
	rules.ValuesOfCorrectTypeRuleWithoutSuggestions.Name: "this value is not of the type that is wanted here",
	rules.VariablesInAllowedPositionRule.Name:            "this variable is not of the type that is wanted here",
}
