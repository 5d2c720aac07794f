import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ApolloClient, HttpLink, InMemoryCache, gql } from '@apollo/client'
import { print } from 'graphql'
import WebSocket from 'ws'
import { load, makeFolder, run } from './folder.js'
import { follow } from './samples/follow.mjs'
import { mutateOrder } from './samples/newest.mjs'
import { start } from './server.js'
import { endpoint, openShop, send } from './shop.js'

const limit = { timeout: 120_000 }
const scratch = makeFolder()

test('the generated types fit the samples, and each type of user error has its case', limit, async () => {
  const config = join(scratch, 'codegen.config.mjs')
  const place = join(scratch, 'place.ts')
  copyFileSync(join(import.meta.dirname, 'samples/place.ts'), place)
  const compile = () => run(scratch, 'tsc', '--strict', '--verbatimModuleSyntax', '--module', 'nodenext', '--target', 'es2023', '--rootDir', '.', '--outDir', 'out', 'place.ts')
  run(scratch, 'graphql-codegen', '--config', 'codegen.config.mjs')
  compile()

  const { place: document, explain } = await load(join(scratch, 'out/place.js'))
  const shop = await openShop(0)
  const explained = async (input) => {
    const response = await fetch(endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query: print(document), variables: { input } }),
    })
    const { data } = await response.json()
    return data.placeOrder.userErrors.map(explain)
  }
  assert.deepEqual(await explained({ customerId: shop.customer, items: [{ sku: shop.sku, quantity: 1001 }] }), [`Only 1000 of ${shop.sku} are left.`])
  assert.match((await explained({ customerId: 'nobody', items: [{ sku: shop.sku, quantity: 1 }] }))[0], /nobody/)
  assert.equal(explain({ __typename: 'NotYetKnown', message: 'Something new.' }), 'Something new.')

  const text = readFileSync(place, 'utf8')
  writeFileSync(place, text.replace("    case 'TooManyLines':\n", ''))
  assert.throws(compile, (error) => /TS1360/.test(error.stdout), 'a type without a case')

  // The schema of a running server has one more scalar.
  writeFileSync(config, readFileSync(config, 'utf8').replace("'subgraph.graphqls'", JSON.stringify(endpoint)))
  writeFileSync(place, text)
  run(scratch, 'graphql-codegen', '--config', 'codegen.config.mjs')
  compile()
})

test('the answer to a retry does not put an older order into the cache', limit, async () => {
  const shop = await openShop(0)
  const client = new ApolloClient({ link: new HttpLink({ uri: endpoint }), cache: new InMemoryCache() })
  const place = {
    mutation: gql`
      mutation Place($input: PlaceOrderInput!) {
        placeOrder(input: $input) {
          order { id status version }
          userErrors { message }
        }
      }
    `,
    variables: { input: { customerId: shop.customer, items: [{ sku: shop.sku, quantity: 1 }], idempotencyKey: randomUUID() } },
  }
  const confirm = gql`mutation ($id: ID!) { confirmOrder(input: { orderId: $id }) { order { id status version } userErrors { message } } }`
  const cached = (id) => client.cache.readFragment({ id: `Order:${id}`, fragment: gql`fragment Cached on Order { status version }` })?.status

  const { placeOrder } = await mutateOrder(client, place)
  const { id } = placeOrder.order
  assert.equal(cached(id), 'PENDING', 'a new order is put into the cache')
  await mutateOrder(client, { mutation: confirm, variables: { id } })
  assert.equal(cached(id), 'CONFIRMED', 'a newer order replaces it')
  const again = await mutateOrder(client, place)
  assert.equal(again.placeOrder.order.status, 'PENDING', 'the retry is answered as the first request was')
  assert.equal(cached(id), 'CONFIRMED')
  await client.mutate(place)
  assert.equal(cached(id), 'PENDING', 'without the sample the cache goes backwards')
})

test('orders are followed past a frozen server, until it makes no sense', limit, async () => {
  const { child, endpoint: own } = await start()
  try {
    const ask = (query, variables) => send(query, variables, own)
    const query = 'subscription ($id: ID!, $after: ID) { orderUpdated(id: $id, after: $after) { id } }'
    const place = () =>
      ask('mutation { placeOrder(input: { customerId: "cust_01", items: [{ sku: "prod_100", quantity: 1 }] }) { order { id timeline(last: 1) { nodes { id } } } userErrors { message } } }')
        .then(({ placeOrder: { order } }) => ({ id: order.id, after: order.timeline.nodes[0].id }))
    const set = (quantity) => ask('mutation ($id: ID!, $quantity: Int!) { setOrderItem(input: { orderId: $id, sku: "prod_100", quantity: $quantity }) { userErrors { message } } }', { id: order.id, quantity })
    const order = await place()

    // A second socket is opened when the first is given up.
    let sockets = 0
    let givenUp
    const frozen = new Promise((resolve) => (givenUp = resolve))
    class Watched extends WebSocket {
      constructor(...args) {
        super(...args)
        if (++sockets > 1) givenUp()
      }
    }
    const updates = []
    let heard
    const first = new Promise((resolve) => (heard = resolve))
    const followed = follow({
      url: own.replace(/^http/, 'ws'), webSocketImpl: Watched, keepAlive: 200, patience: 300, query, ...order,
      seen({ id }) {
        updates.push(id)
        heard()
        return updates.length < 3
      },
    })
    await set(2)
    await first
    child.kill('SIGSTOP')
    await frozen
    child.kill('SIGCONT')
    await set(3)
    await set(4)
    await followed
    const timeline = await ask('query ($id: ID!) { order(id: $id) { timeline { nodes { id } } } }', { id: order.id })
    assert.deepEqual(updates, timeline.order.timeline.nodes.map((node) => node.id).slice(1), 'each update once')

    const code = (expected) => (reason) => reason[0].extensions.code === expected
    const options = { url: own.replace(/^http/, 'ws'), webSocketImpl: WebSocket, query, seen() {} }
    await assert.rejects(follow({ ...options, id: '01HVMK3P2QRSV8T4X6Y9ZABCDZ' }), code('NOT_FOUND'))
    await assert.rejects(follow({ ...options, id: (await place()).id, after: updates[0] }), code('BAD_USER_INPUT'))
  } finally {
    child.kill('SIGCONT')
    child.kill()
  }
})
