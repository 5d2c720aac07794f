import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import { printSchema } from 'graphql'
import compiler from 'relay-compiler'

import { build, published } from './schema.js'

const sources = {
  // As there is no node(id), what is refetched stands on Query.
  'Orders.js': `
import { graphql } from 'relay-runtime'

graphql\`
  fragment Orders_query on Query
  @refetchable(queryName: "OrdersPage")
  @argumentDefinitions(first: { type: "Int", defaultValue: 20 }, after: { type: "String" }, statuses: { type: "[OrderStatus!]" }) {
    orders(first: $first, after: $after, statuses: $statuses) @connection(key: "Orders_orders", filters: ["statuses"]) {
      edges { node { id status total { amount currencyCode } customer { id name } } }
    }
  }
\`

graphql\`
  query OrdersQuery { ...Orders_query @arguments(first: 50) }
\`
`,
  'Place.js': `
import { graphql } from 'relay-runtime'

graphql\`
  mutation PlaceMutation($input: PlaceOrderInput!, $connections: [ID!]!) {
    placeOrder(input: $input) {
      order @prependNode(connections: $connections, edgeTypeName: "OrderEdge") { id status }
      userErrors { __typename code message field ... on InsufficientStock { sku available } }
    }
  }
\`
`,
}

/** Compiles sources and returns the names of the generated files. It fails if a source does not match the schema. */
function compiled(files) {
  const project = mkdtempSync(join(tmpdir(), 'relay-'))
  try {
    mkdirSync(join(project, 'src'))
    writeFileSync(join(project, 'schema.graphql'), printSchema(build(published)))
    writeFileSync(join(project, 'relay.config.json'), JSON.stringify({ src: './src', schema: './schema.graphql', language: 'javascript' }))
    for (const [name, text] of Object.entries(files)) {
      writeFileSync(join(project, 'src', name), text)
    }
    execFileSync(compiler, ['relay.config.json'], { cwd: project, stdio: 'pipe', encoding: 'utf8' })
    return readdirSync(join(project, 'src', '__generated__')).sort()
  } finally {
    rmSync(project, { recursive: true })
  }
}

test('Relay takes the connections and the mutations', () => {
  assert.deepEqual(compiled(sources), [
    'OrdersPage.graphql.js',
    'OrdersQuery.graphql.js',
    'Orders_query.graphql.js',
    'PlaceMutation.graphql.js',
  ])
})

test('a page without edges, Relay does not take', () => {
  const wrong = sources['Orders.js'].replace('edges { node { id status total { amount currencyCode } customer { id name } } }', 'nodes { id }')
  assert.throws(() => compiled({ 'Orders.js': wrong }), /edges/)
})
