import http from 'node:http'

const address = process.env.BASE_URL
if (!address) {
  throw new Error('set BASE_URL to the address of a running server, such as http://127.0.0.1:8080')
}
const endpoint = new URL('/graphql', address)

/** Sends a query to the order book directly, without a gateway. */
export async function ask(query, variables) {
  const response = await fetch(endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query, variables }),
  })
  const { data, errors } = await response.json()
  if (errors) {
    throw new Error(JSON.stringify(errors))
  }
  return data
}

export const customer = 'federation-customer'

/**
 * Returns the IDs of 100 orders of one customer. The orders have idempotency keys, so a second run of the test places no new orders.
 */
export async function hundredOrders() {
  const sku = 'federation-product'
  const records = await ask(
    `mutation ($customer: ID!, $sku: ID!) {
      createCustomer(input: { id: $customer, name: "Fay", email: "fay@federation.example", idempotencyKey: "federation-customer" }) { userErrors { message } }
      createProduct(input: { sku: $sku, name: "Mug", category: "Mugs", unitPrice: { amount: "4.00", currencyCode: "USD" }, idempotencyKey: "federation-product" }) { userErrors { message } }
      createWarehouse(input: { id: "federation-hall", name: "Hall", idempotencyKey: "federation-hall" }) { userErrors { message } }
      adjustInventory(input: { sku: $sku, warehouseId: "federation-hall", delta: 1000, idempotencyKey: "federation-stock" }) { userErrors { message } }
    }`,
    { customer, sku },
  )
  const ids = []
  for (let i = 0; i < 100; i++) {
    const { placeOrder } = await ask(
      `mutation ($input: PlaceOrderInput!) { placeOrder(input: $input) { order { id } userErrors { message } } }`,
      { input: { customerId: customer, items: [{ sku, quantity: 1 }], idempotencyKey: `federation-order-${i}` } },
    )
    if (!placeOrder.order) {
      throw new Error(JSON.stringify([placeOrder, records]))
    }
    ids.push(placeOrder.order.id)
  }
  return ids
}

/**
 * Stands before the order book on a free port, and writes down what goes through: each request's query and variables, and the errors and
 * the explanation in its answer.
 */
export async function startCounting() {
  let seen = []
  const server = http.createServer(async (incoming, outgoing) => {
    const chunks = []
    for await (const chunk of incoming) {
      chunks.push(chunk)
    }
    const headers = { ...incoming.headers, 'x-ordergraph-explain': 'true' }
    // The body is read here, so it may not be compressed, and goes out as one piece.
    for (const name of ['accept-encoding', 'connection', 'content-length', 'host', 'transfer-encoding', 'expect']) {
      delete headers[name]
    }
    try {
      const body = Buffer.concat(chunks)
      const response = await fetch(endpoint, { method: incoming.method, headers, body: body.length > 0 ? body : undefined })
      const text = await response.text()
      const { query, variables } = JSON.parse(body)
      const { errors, extensions } = JSON.parse(text)
      seen.push({ method: incoming.method, status: response.status, query, variables, errors, explain: extensions.explain })
      outgoing.writeHead(response.status, { 'content-type': response.headers.get('content-type') })
      outgoing.end(text)
    } catch (error) {
      seen.push({ error })
      outgoing.writeHead(502).end(String(error))
    }
  })
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening))
  return {
    url: `http://127.0.0.1:${server.address().port}/graphql`,
    /** What went through since it was last asked. */
    take() {
      const taken = seen
      seen = []
      return taken
    },
    async stop() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}
