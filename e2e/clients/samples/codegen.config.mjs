// GraphQL Code Generator. subgraph.graphqls is a copy of deploy/subgraph.graphqls.
export default {
  schema: 'subgraph.graphqls',
  importExtension: '.js',
  documents: ['*.{ts,graphql}'],
  generates: {
    './gql/': {
      preset: 'client',
      presetConfig: { fragmentMasking: false },
      config: {
        strictScalars: true,
        useTypeImports: true,
        scalars: { ID: 'string', DateTime: 'string', Date: 'string', Decimal: 'string', CurrencyCode: 'string', _Any: 'unknown' },
      },
    },
  },
}
