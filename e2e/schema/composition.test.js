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
  })

  test(`The Guild composes the order book ${what}`, () => {
    const { errors, supergraphSdl } = composeGuild(subgraphs)
    assert.deepEqual(errors?.map(String) ?? [], [])
    assert.match(supergraphSdl, /type Order/)
  })
}

test('what does not fit composes with neither', () => {
  const wrong = parse(loyalty.replace('type Money @shareable', 'type Money'))
  const subgraphs = [...alone, { name: 'loyalty', url: 'http://loyalty.example/graphql', typeDefs: wrong }]
  assert.match(String(composeApollo(subgraphs).errors), /Money\.amount/)
  assert.match(String(composeGuild(subgraphs).errors), /Money\.amount/)
})
