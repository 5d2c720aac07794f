import assert from 'node:assert/strict'
import { test } from 'node:test'

import { composeServices as composeApollo } from '@apollo/composition'
import { composeServices as composeGuild } from '@theguild/federation-composition'
import { parse } from 'graphql'

import { loyalty, published } from './schema.js'

const alone = [{ name: 'orders', url: 'http://orders.example/graphql', typeDefs: parse(published) }]
const together = [...alone, { name: 'loyalty', url: 'http://loyalty.example/graphql', typeDefs: parse(loyalty) }]

for (const [what, subgraphs] of [
  ['alone', alone],
  ['with a subgraph that extends it and shares its values', together],
]) {
  test(`Apollo composes the order book ${what}, without a hint`, () => {
    const { errors, hints, supergraphSdl } = composeApollo(subgraphs)
    assert.deepEqual(errors?.map(String) ?? [], [])
    assert.deepEqual(hints.map(String), [])
    assert.match(supergraphSdl, /type Order/)
    assert.match(supergraphSdl, /type Subscription/)
    assert.doesNotMatch(supergraphSdl, /@access/)
  })

  test(`The Guild composes the order book ${what}`, () => {
    const { errors, supergraphSdl } = composeGuild(subgraphs)
    assert.deepEqual(errors?.map(String) ?? [], [])
    assert.match(supergraphSdl, /type Order/)
    assert.match(supergraphSdl, /type Subscription/)
    assert.doesNotMatch(supergraphSdl, /@access/)
  })
}

test('the user errors of other subgraphs compose with ours', () => {
  const typeDefs = parse(`
    extend schema @link(url: "https://specs.apollo.dev/federation/v2.0", import: ["@key", "@shareable"])
    type Query { points(customerId: ID!): Int }
    type Mutation { redeem(customerId: ID!): RedeemPayload }
    type RedeemPayload { customer: Customer userErrors: [UserError!]! }
    type Customer @key(fields: "id") { id: ID! points: Int }
    interface UserError { code: ErrorCode! message: String! field: [String!] }
    enum ErrorCode { NOT_FOUND TOO_FEW_POINTS }
    type NotFound implements UserError @shareable { code: ErrorCode! message: String! field: [String!] }
    type TooFewPoints implements UserError { code: ErrorCode! message: String! field: [String!] has: Int! }
  `)
  const subgraphs = [...alone, { name: 'redeem', url: 'http://redeem.example/graphql', typeDefs }]
  const { errors, hints } = composeApollo(subgraphs)
  assert.deepEqual(errors?.map(String) ?? [], [])
  // That an enum of both has more values is told for those who look for it.
  assert.deepEqual(hints.filter(({ definition }) => definition.level.name !== 'DEBUG').map(String), [])
  assert.deepEqual(composeGuild(subgraphs).errors?.map(String) ?? [], [])
})

test('what does not fit composes with neither', () => {
  const wrong = parse(loyalty.replace('type Money @shareable', 'type Money'))
  const subgraphs = [...alone, { name: 'loyalty', url: 'http://loyalty.example/graphql', typeDefs: wrong }]
  assert.match(String(composeApollo(subgraphs).errors), /Money\.amount/)
  assert.match(String(composeGuild(subgraphs).errors), /Money\.amount/)
})
