import { randomUUID } from 'node:crypto'

const address = process.env.BASE_URL
if (!address) {
  throw new Error('set BASE_URL to the address of a running server, such as http://127.0.0.1:8080')
}

/** Where the server answers GraphQL. */
export const endpoint = new URL('/graphql', address).href

/** Sends one operation; what goes wrong is thrown. */
export async function send(query, variables, to = endpoint) {
  const response = await fetch(to, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/graphql-response+json' },
    body: JSON.stringify({ query, variables }),
  })
  const { data, errors } = await response.json()
  if (errors) {
    throw new Error(`${response.status}: ${JSON.stringify(errors)}`)
  }
  const refused = Object.values(data).flatMap((payload) => payload?.userErrors ?? [])
  if (refused.length > 0) {
    throw new Error(JSON.stringify(refused))
  }
  return data
}

/** A fetch that writes down what it was asked for. */
export function recorded() {
  const requests = []
  const fetcher = async (input, init = {}) => {
    const url = new URL(input)
    const sent = url.searchParams.size > 0 ? Object.fromEntries(url.searchParams) : JSON.parse(init.body)
    requests.push({ method: init.method ?? 'GET', withText: Boolean(sent.query), sent })
    return fetch(input, init)
  }
  return { requests, fetcher }
}

/** A shop with one product, and a customer who has placed a number of orders; ids are new each time. */
export async function openShop(orders) {
  const mark = randomUUID().slice(0, 8)
  const shop = { customer: `c-${mark}`, sku: `p-${mark}`, warehouse: `w-${mark}` }
  await send(
    `mutation ($customer: ID!, $email: String!, $sku: ID!, $warehouse: ID!) {
      createWarehouse(input: { id: $warehouse, name: "Stock" }) { userErrors { message } }
      createProduct(input: { sku: $sku, name: "Thing", category: "Things", unitPrice: { amount: "2.50", currencyCode: "USD" } }) { userErrors { message } }
      setInventoryLevel(input: { sku: $sku, warehouseId: $warehouse, quantity: 1000 }) { userErrors { message } }
      createCustomer(input: { id: $customer, name: "Client", email: $email }) { userErrors { message } }
    }`,
    { ...shop, email: `${mark}@example.com` },
  )
  shop.placed = []
  for (let i = 0; i < orders; i++) {
    await placeOrder(shop)
  }
  return shop
}

/** Places one more order of the shop's customer, the newest of all. */
export async function placeOrder(shop) {
  const { placeOrder: payload } = await send(
    `mutation ($customer: ID!, $sku: ID!, $key: String!) {
      placeOrder(input: { customerId: $customer, items: [{ sku: $sku, quantity: 1 }], idempotencyKey: $key }) {
        order { id }
        userErrors { message }
      }
    }`,
    { customer: shop.customer, sku: shop.sku, key: randomUUID() },
  )
  shop.placed.unshift(payload.order.id)
  return payload.order.id
}
