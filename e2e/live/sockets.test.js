import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import net from 'node:net'
import { after, before, describe, test } from 'node:test'
import { createClient } from 'graphql-ws'
import WebSocket from 'ws'
import { follow, ids, place, quantity, range, send, set, start, take, timeline } from './server.js'
import { open } from './socket.js'

const limit = { timeout: 120_000 }

/** The server, with time-outs that a test can wait for. */
let server
const clients = []

before(async () => {
  server = await start({ ORDERGRAPH_INIT_TIMEOUT: '1s', ORDERGRAPH_KEEP_ALIVE: '1s', ORDERGRAPH_ANSWER_TIMEOUT: '3s' })
})

after(async () => {
  await Promise.all(clients.map((client) => client.dispose()))
  server.stop()
})

function client(options = {}) {
  const made = createClient({ url: server.ws, webSocketImpl: WebSocket, retryAttempts: 0, lazy: true, ...options })
  clients.push(made)
  return made
}

test('a query, a mutation and an error are answered over one socket', limit, async () => {
  let connections = 0
  const c = client({ on: { connected: () => connections++ }, lazyCloseTimeout: 1000 })
  const [answer] = await take(c.iterate({ query: '{ customer(id: "cust_01") { name } }' }), 1)
  assert.deepEqual(answer, { data: { customer: { name: 'Alice Chen' } } })
  const [changed] = await take(c.iterate({ query: 'mutation { updateCustomer(input: { id: "cust_01", name: "Alice Chen" }) { customer { name } userErrors { message } } }' }), 1)
  assert.equal(changed.data.updateCustomer.customer.name, 'Alice Chen')
  await assert.rejects(take(c.iterate({ query: '{ nonsense }' }), 1), (errors) => errors[0].extensions.code === 'BAD_USER_INPUT')
  await assert.rejects(take(c.iterate({ query: follow, variables: { id: '01HVMK3P2QRSV8T4X6Y9ZABCDZ' } }), 1), (errors) => errors[0].extensions.code === 'NOT_FOUND')
  assert.equal(connections, 1)
})

test('updates arrive while orders change, each once and in order', limit, async () => {
  const order = await place(server)
  const updates = client().iterate({ query: follow, variables: order })
  const told = take(updates, 30)
  for (const pieces of range(2, 31)) {
    await set(server, order, pieces)
  }
  const results = await told
  assert.deepEqual(ids(results), await timeline(server, order))
  assert.equal(quantity(results.at(-1)), 31)
  await updates.return()
})

test('who comes back goes on behind the last update with after', limit, async () => {
  const order = await place(server)
  const first = client().iterate({ query: follow, variables: order })
  await set(server, order, 2)
  const [last] = await take(first, 1)
  await first.return()
  for (const pieces of range(3, 12)) {
    await set(server, order, pieces)
  }
  const again = client().iterate({ query: follow, variables: { id: order.id, after: last.data.orderUpdated.id } })
  const told = take(again, 12)
  for (const pieces of range(13, 14)) {
    await set(server, order, pieces)
  }
  const [, ...rest] = await timeline(server, order)
  assert.deepEqual(ids(await told), rest)
  await again.return()
  const other = await place(server)
  await assert.rejects(take(client().iterate({ query: follow, variables: { id: other.id, after: last.data.orderUpdated.id } }), 1), (errors) => errors[0].extensions.code === 'BAD_USER_INPUT')
})

test('200 subscriptions on four sockets are all told', limit, async () => {
  const order = await place(server)
  const streams = range(1, 4).flatMap(() => {
    const c = client()
    return range(1, 50).map(() => c.iterate({ query: follow, variables: order }))
  })
  const told = streams.map((stream) => take(stream, 5))
  for (const pieces of range(2, 6)) {
    await set(server, order, pieces)
  }
  const happened = await timeline(server, order)
  for (const updates of await Promise.all(told)) {
    assert.deepEqual(ids(updates), happened)
  }
  await Promise.all(streams.map((stream) => stream.return()))
})

test('both sides ping', limit, async () => {
  const seen = { ping: 0, pong: 0 }
  let enough
  const both = new Promise((resolve) => (enough = resolve))
  const saw = (received, name) => {
    if (received) {
      seen[name]++
    }
    if (seen.ping > 1 && seen.pong > 1) {
      enough()
    }
  }
  const c = client({ lazy: false, keepAlive: 200, on: { ping: (received) => saw(received, 'ping'), pong: (received) => saw(received, 'pong') } })
  await both
  const [answer] = await take(c.iterate({ query: '{ customer(id: "cust_01") { name } }' }), 1)
  assert.equal(answer.data.customer.name, 'Alice Chen')
})

test('a client that answers no ping is cut', limit, async () => {
  const deaf = await open(server)
  deaf.send({ type: 'connection_init' })
  await deaf.receive('ping')
  assert.equal((await deaf.closed).code, 1006)
})

describe('close codes', limit, () => {
  const init = { type: 'connection_init' }
  const subscribe = { id: 'a', type: 'subscribe', payload: { query: 'subscription { orderStatusChanged { id } }' } }
  for (const [name, code, messages] of [
    ['4400: no message', 4400, ['nonsense']],
    ['4400: an unknown type', 4400, [{ type: 'start' }]],
    ['4400: no payload', 4400, [init, { id: 'a', type: 'subscribe' }]],
    ['4400: a query that is not a string', 4400, [init, { ...subscribe, payload: { query: 1 } }]],
    ['4400: variables that are not an object', 4400, [init, { ...subscribe, payload: { ...subscribe.payload, variables: [] } }]],
    ['4401: subscribe before connection_init', 4401, [subscribe]],
    ['4403: two Authorizations', 4403, [{ ...init, payload: { authorization: 'Bearer a', Authorization: 'Bearer b' } }]],
    ['4408: no connection_init', 4408, []],
    ['4409: the same id twice', 4409, [init, subscribe, subscribe]],
    ['4429: connection_init twice', 4429, [init, init]],
    ['1009: a message that is too long', 1009, [init, JSON.stringify({ type: 'ping', payload: { a: 'a'.repeat(1 << 20) } })]],
  ]) {
    test(name, limit, async () => {
      const raw = await open(server)
      messages.forEach((message) => raw.send(message))
      assert.equal((await raw.closed).code, code)
    })
  }
  for (const protocols of [[], ['graphql-ws']]) {
    test(`4406: the subprotocols [${protocols}]`, limit, async () => {
      assert.equal((await (await open(server, protocols)).closed).code, 4406)
    })
  }
  test('403: a page of another site', limit, async () => {
    await assert.rejects(open(server, undefined, { origin: 'https://evil.example' }), /403/)
  })
})

test('tokens: who has none or a wrong one is refused, and a socket ends with its token', limit, async () => {
  const secret = 'a secret of thirty-two characters'
  const guarded = await start({ ORDERGRAPH_AUTH: 'jwt', ORDERGRAPH_JWT_SECRET: secret, ORDERGRAPH_JWT_ISSUER: 'test', ORDERGRAPH_JWT_AUDIENCE: 'test', ORDERGRAPH_JWT_LEEWAY: '0s', ORDERGRAPH_CURSOR_KEY: 'a key of this test' })
  try {
    const token = (seconds, claims) => {
      const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url')
      const now = Math.floor(Date.now() / 1000)
      const signed = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ iss: 'test', aud: 'test', sub: 'me', iat: now, nbf: now, exp: now + seconds, ...claims })}`
      return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
    }
    const customer = { role: 'CUSTOMER', customer_id: 'cust_01' }
    for (const payload of [undefined, {}, { Authorization: 'Bearer nonsense' }, { Authorization: `Bearer ${token(-10, customer)}` }]) {
      const raw = await open(guarded)
      raw.send({ type: 'connection_init', payload })
      assert.equal((await raw.closed).code, 4403)
    }
    const order = await place(guarded, { authorization: `Bearer ${token(600, { role: 'ADMIN' })}` })
    const closed = []
    const c = createClient({
      url: guarded.ws, webSocketImpl: WebSocket, retryAttempts: 0, connectionParams: { authorization: `Bearer ${token(4, customer)}` }, on: { closed: (event) => closed.push(event.code) },
    })
    await assert.rejects(take(c.iterate({ query: 'subscription { orderStatusChanged { id } }' }), 1), (errors) => errors[0].extensions.code === 'FORBIDDEN')
    await assert.rejects(take(c.iterate({ query: follow, variables: order }), 1))
    assert.equal(closed.at(-1), 4403)
    await c.dispose()
  } finally {
    guarded.stop()
  }
})

test('a client that stops reading is cut, and others are told everything', limit, async () => {
  const order = await place(server)
  const names = range(1, 90).map((i) => `${'a'.repeat(190)}${i}: orderId`).join(' ')
  const { hostname, port } = new URL(server.http)
  const stuck = net.connect(Number(port), hostname)
  const cut = new Promise((resolve) => stuck.on('close', resolve))
  stuck.on('error', () => {}) // it is cut while it sends, perhaps
  const frame = (message) => {
    const text = Buffer.from(JSON.stringify(message))
    const head = Buffer.from([0x81, 0x80 | 126, text.length >> 8, text.length & 255, 0, 0, 0, 0])
    stuck.write(Buffer.concat([head, text]))
  }
  stuck.write('GET /graphql HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n')
  await new Promise((resolve) => stuck.once('data', resolve))
  frame({ type: 'connection_init' })
  await new Promise((resolve) => stuck.once('data', resolve))
  stuck.pause()
  for (const i of range(1, 50)) {
    frame({ id: String(i), type: 'subscribe', payload: { query: `subscription ($id: ID!, $after: ID) { orderUpdated(id: $id, after: $after) { ${names} } }`, variables: order } })
  }
  const updates = client().iterate({ query: follow, variables: order })
  const calm = server.memory()
  const changes = 500
  const told = take(updates, changes)
  for (const i of range(1, changes)) {
    await set(server, order, (i % 90) + 2)
  }
  assert.deepEqual(ids(await told), await timeline(server, order))
  // 500 events of 20 kB for each of 50 subscriptions are 500 MB.
  assert.ok(server.memory() - calm < 150 << 20, `the server has grown by ${(server.memory() - calm) >> 20} MB`)
  await updates.return()
  // What is left in the buffers can be read, then there is nothing more.
  stuck.resume()
  await cut
})

test('sockets are told that the server goes away, which it does', limit, async () => {
  const leaving = await start()
  const raw = await open(leaving)
  raw.send({ type: 'connection_init' })
  await raw.receive('connection_ack')
  raw.send({ id: 'a', type: 'subscribe', payload: { query: 'subscription { orderStatusChanged { id } }' } })
  await send(leaving, '{ __typename }')
  leaving.stop()
  assert.equal((await raw.closed).code, 1001)
  assert.equal(await leaving.exited, 0)
})
