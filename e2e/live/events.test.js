import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createClient } from 'graphql-sse'
import { follow, ids, place, quantity, range, set, start, take, timeline } from './server.js'

const limit = { timeout: 120_000 }

let server

before(async () => {
  server = await start({ ORDERGRAPH_KEEP_ALIVE: '200ms' })
})

after(() => server.stop())

const client = () => createClient({ url: server.http, retryAttempts: 0 })

test('a query and a mutation are answered by one event', limit, async () => {
  const [answer] = await take(client().iterate({ query: '{ customer(id: "cust_01") { name } }' }), 1)
  assert.deepEqual(answer, { data: { customer: { name: 'Alice Chen' } } })
  const whole = []
  for await (const result of client().iterate({ query: 'mutation { updateCustomer(input: { id: "cust_01", name: "Alice Chen" }) { userErrors { message } } }' })) {
    whole.push(result)
  }
  assert.deepEqual(whole, [{ data: { updateCustomer: { userErrors: [] } } }])
})

test('updates arrive while orders change, each once and in order, and with after behind the last', limit, async () => {
  const order = await place(server)
  const updates = client().iterate({ query: follow, variables: order })
  const told = take(updates, 20)
  for (const pieces of range(2, 21)) {
    await set(server, order, pieces)
  }
  const results = await told
  assert.deepEqual(ids(results), await timeline(server, order))
  assert.equal(quantity(results.at(-1)), 21)
  await updates.return()
  for (const pieces of range(22, 25)) {
    await set(server, order, pieces)
  }
  const again = client().iterate({ query: follow, variables: { id: order.id, after: results[14].data.orderUpdated.id } })
  assert.deepEqual(ids(await take(again, 9)), (await timeline(server, order)).slice(15))
  await again.return()
})

test('50 streams at once are all told', limit, async () => {
  const order = await place(server)
  const streams = range(1, 50).map(() => client().iterate({ query: follow, variables: order }))
  const told = streams.map((stream) => take(stream, 3))
  for (const pieces of range(2, 4)) {
    await set(server, order, pieces)
  }
  const happened = await timeline(server, order)
  for (const updates of await Promise.all(told)) {
    assert.deepEqual(ids(updates), happened)
  }
  await Promise.all(streams.map((stream) => stream.return()))
})

test('what is refused before the stream begins has a status', limit, async () => {
  await assert.rejects(take(client().iterate({ query: follow, variables: { id: '01HVMK3P2QRSV8T4X6Y9ZABCDZ' } }), 1), (error) => error.response.status === 400)
  await assert.rejects(take(client().iterate({ query: '{ nonsense }' }), 1), (error) => error.response.status === 400)
})

test('a silent stream is kept alive by comments, by GET as by POST', limit, async () => {
  const order = await place(server)
  const leave = new AbortController()
  const url = `${server.http}?${new URLSearchParams({ query: follow, variables: JSON.stringify(order) })}`
  const response = await fetch(url, { headers: { accept: 'text/event-stream' }, signal: leave.signal })
  assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8')
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  while (text.split(':\n\n').length < 4) {
    text += (await reader.read()).value
  }
  await set(server, order, 2)
  while (!text.includes('event: next\ndata: {"data":{"orderUpdated"')) {
    text += (await reader.read()).value
  }
  leave.abort()
})
