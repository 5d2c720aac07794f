import graphql from '@graphql-eslint/eslint-plugin'

import { schemaFiles } from './schema.js'

const rule = (name, options) => [`@graphql-eslint/${name}`, options ? ['error', options] : 'error']

/** Names that federation gives, not we. */
const foreign = '^(federation__FieldSet|link__Import)$'

export default [
  {
    files: schemaFiles.map((name) => name.slice(1)),
    plugins: { '@graphql-eslint': graphql },
    languageOptions: {
      parser: graphql.parser,
      parserOptions: { graphQLConfig: { schema: schemaFiles } },
    },
    rules: Object.fromEntries([
      rule('relay-connection-types'),
      // Lists of records are pages with `nodes` beside `edges`, and refusals are plain lists: not every list wraps an edge.
      // There is no interface Node, because the IDs of the order book do not contain a type.
      rule('relay-edge-types', { withEdgeSuffix: true, listTypeCanWrapOnlyEdgeType: false, shouldImplementNode: false }),
      rule('relay-arguments', { includeBoth: true }),
      rule('relay-page-info'),

      rule('require-description', {
        types: true,
        rootField: true,
        DirectiveDefinition: true,
        EnumValueDefinition: true,
        FieldDefinition: true,
        InputValueDefinition: true,
      }),
      rule('no-hashtag-description'),

      rule('naming-convention', {
        allowLeadingUnderscore: true, // as federation's have
        types: { style: 'PascalCase', ignorePattern: foreign },
        FieldDefinition: 'camelCase',
        InputValueDefinition: 'camelCase',
        Argument: 'camelCase',
        DirectiveDefinition: 'camelCase',
        EnumValueDefinition: 'UPPER_CASE',
        // Fields tell what they give, not what happens.
        'FieldDefinition[parent.name.value=Query]': { forbiddenPrefixes: ['get', 'list', 'query'], forbiddenSuffixes: ['Query'] },
        'FieldDefinition[parent.name.value=Mutation]': { forbiddenSuffixes: ['Mutation'] },
        EnumTypeDefinition: { style: 'PascalCase', forbiddenPrefixes: ['Enum'], forbiddenSuffixes: ['Enum'] },
      }),
      rule('no-typename-prefix'),
      rule('input-name', { checkInputType: true, caseSensitiveInputType: false }),
      rule('unique-enum-value-names'),

      rule('no-unreachable-types'),
      rule('no-scalar-result-type-on-mutation'),
      rule('require-deprecation-reason'),
      rule('require-nullable-fields-with-oneof'),
      rule('require-type-pattern-with-oneof'),
      rule('known-directives'),
      rule('known-type-names'),
      rule('possible-type-extension'),
      rule('provided-required-arguments'),
      rule('unique-directive-names'),
      rule('unique-directive-names-per-location'),
      rule('unique-field-definition-names'),
      rule('unique-operation-types'),
      rule('unique-type-names'),
    ]),
  },
]
