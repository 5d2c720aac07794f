import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

const program = process.env.ORDERGRAPH
if (!program) {
  throw new Error('set ORDERGRAPH to the path of the built server')
}

/** Starts a server with the embedded store and variables of its own. */
export async function start(environment = {}) {
  const child = spawn(program, ['-addr', '127.0.0.1:0'], { env: { ORDERGRAPH_STORE: 'embedded', ...environment }, stdio: ['ignore', 'pipe', 'inherit'] })
  let endpoint
  for await (const line of createInterface({ input: child.stdout })) {
    endpoint = line.match(/^ *GraphQL +(\S+)$/)?.[1]
    if (endpoint) {
      break
    }
  }
  assert.ok(endpoint, 'the server starts')
  return {
    http: endpoint,
    ws: endpoint.replace(/^http/, 'ws'),
    stop: () => child.kill(),
    exited: new Promise((resolve) => child.on('exit', resolve)),
    /** What the server holds, in bytes; 0 where the system does not tell. */
    memory() {
      try {
        return Number(readFileSync(`/proc/${child.pid}/status`, 'utf8').match(/VmRSS:\s+(\d+)/)[1]) * 1024
      } catch {
        return 0
      }
    },
  }
}

/** Sends a request and returns its data; it must have no errors. */
export async function send(server, query, variables, headers = {}) {
  const response = await fetch(server.http, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify({ query, variables }) })
  const { data, errors } = await response.json()
  assert.equal(errors, undefined, JSON.stringify(errors))
  for (const payload of Object.values(data)) {
    assert.deepEqual(payload?.userErrors ?? [], [])
  }
  return data
}

/** Places an order of Alice. Returns the ID of the order and of its last event, after which a subscription can start. */
export async function place(server, headers) {
  const { placeOrder } = await send(
    server,
    `mutation { placeOrder(input: { customerId: "cust_01", items: [{ sku: "prod_100", quantity: 1 }] }) {
      order { id timeline(last: 1) { nodes { id } } } userErrors { message } } }`,
    undefined,
    headers,
  )
  return { id: placeOrder.order.id, after: placeOrder.order.timeline.nodes[0].id }
}

/** Changes how many pieces an order has. */
export async function set(server, order, quantity) {
  await send(server, `mutation ($id: ID!, $quantity: Int!) { setOrderItem(input: { orderId: $id, sku: "prod_100", quantity: $quantity }) { userErrors { message } } }`, { id: order.id, quantity })
}

export const follow = `subscription ($id: ID!, $after: ID) { orderUpdated(id: $id, after: $after) { id order { items { nodes { quantity } } } } }`

/** The ids of updates. */
export const ids = (results) =>
  results.map((result) => {
    assert.equal(result.errors, undefined, JSON.stringify(result.errors))
    return result.data.orderUpdated.id
  })

/** How many pieces the order has by an update: those that it had then, or later. */
export const quantity = (result) => result.data.orderUpdated.order.items.nodes[0].quantity

/** The ids of what has happened to an order since it was placed, oldest first. */
export async function timeline(server, order) {
  const all = []
  for (let after = null, more = true; more; ) {
    const data = await send(server, `query ($id: ID!, $after: String) { order(id: $id) { timeline(first: 100, after: $after) { nodes { id } pageInfo { endCursor hasNextPage } } } }`, { id: order.id, after })
    const page = data.order.timeline
    all.push(...page.nodes.map((event) => event.id))
    after = page.pageInfo.endCursor
    more = page.pageInfo.hasNextPage
  }
  return all.slice(all.indexOf(order.after) + 1)
}

/** The next count values of an iterator. */
export async function take(iterator, count) {
  const values = []
  while (values.length < count) {
    const { value, done } = await iterator.next()
    assert.ok(!done, `the stream ended behind ${values.length} of ${count}`)
    values.push(value)
  }
  return values
}

export const range = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => from + i)
