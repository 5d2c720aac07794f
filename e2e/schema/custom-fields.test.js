import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'

import { composeServices as composeApollo } from '@apollo/composition'
import { composeServices as composeGuild } from '@theguild/federation-composition'
import { buildClientSchema, getIntrospectionQuery, parse } from 'graphql'

import { loyalty, root } from './schema.js'
import { start } from './server.js'

/** The page describes the file and how to use it, so the test does what it says. */
const page = readFileSync(`${root}/docs/custom-fields.md`, 'utf8')
const block = (language) => page.match(new RegExp('```' + language + '\n([^`]*)```'))[1]
const request = page.match(/-d '({.*})'/)[1]

let server
const send = (body) => server.send(body)

before(async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'ordergraph-')), 'shop.graphqls')
  writeFileSync(file, block('graphql'))
  server = await start(file)
})

after(() => server?.stop())

test('the request of the page sets custom fields', async () => {
  const { placeOrder } = await send(request)
  assert.deepEqual(placeOrder.userErrors, [])
  assert.equal(placeOrder.order.giftMessage, 'Happy birthday')
  assert.equal(placeOrder.order.channel, 'APP')
})

test('the queries of the page find the order', async () => {
  const queries = page.match(/```graphql\n({[^`]*})\n```/)[1]
  const { ordersByChannel, orderByErpNumber } = await send(JSON.stringify({ query: queries }))
  assert.equal(ordersByChannel.nodes.length, 1)
  assert.equal(ordersByChannel.nodes[0].status, 'PENDING')
  assert.equal(orderByErpNumber, null)
})

test('introspection and the subgraph contain the fields of the page', async () => {
  const schema = buildClientSchema(await send(JSON.stringify({ query: getIntrospectionQuery() })))
  assert.equal(String(schema.getType('Order').getFields().channel.type), 'Channel!')
  assert.equal(String(schema.getType('PlaceOrderInput').getFields().channel.type), 'Channel')
  assert.equal(schema.getType('PlaceOrderInput').getFields().customFields, undefined)
  assert.ok(schema.getMutationType().getFields().setCustomFields)
  const { _service } = await send(JSON.stringify({ query: '{ _service { sdl } }' }))
  assert.match(_service.sdl, /extend type OrderItem {\s+"""\s+Custom field\.\s+"""\s+engraving: String/)
})

test('a subgraph with custom fields composes', async () => {
  const { _service } = await send(JSON.stringify({ query: '{ _service { sdl } }' }))
  const subgraphs = [
    { name: 'orders', url: 'http://orders.example/graphql', typeDefs: parse(_service.sdl) },
    { name: 'loyalty', url: 'http://loyalty.example/graphql', typeDefs: parse(loyalty) },
  ]
  for (const { errors, supergraphSdl } of [composeApollo(subgraphs), composeGuild(subgraphs)]) {
    assert.deepEqual(errors?.map(String) ?? [], [])
    assert.match(supergraphSdl, /giftMessage: String/)
    assert.match(supergraphSdl, /ordersByChannel\([^)]*channel: Channel!/)
  }
})
