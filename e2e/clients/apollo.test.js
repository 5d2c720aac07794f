import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache, gql } from '@apollo/client'
import { PersistedQueryLink } from '@apollo/client/link/persisted-queries'
import { relayStylePagination } from '@apollo/client/utilities'
import { endpoint, openShop, placeOrder, recorded } from './shop.js'

const page = gql`
  query Orders($customer: ID!, $after: String) {
    customer(id: $customer) {
      id
      orders(first: 4, after: $after) {
        edges {
          cursor
          node {
            id
            status
            version
          }
        }
        pageInfo {
          hasNextPage
          hasPreviousPage
          startCursor
          endCursor
        }
      }
    }
  }
`

function newClient(link) {
  const { requests, fetcher } = recorded()
  const http = new HttpLink({ uri: endpoint, fetch: fetcher })
  const client = new ApolloClient({
    link: link ? ApolloLink.from([link, http]) : http,
    cache: new InMemoryCache({
      typePolicies: { Customer: { fields: { orders: relayStylePagination(['placed']) } }, Product: { keyFields: ['sku'] } },
    }),
  })
  return { client, requests }
}

/** Waits until what is watched fulfils a condition. */
function seen(watched, holds) {
  return new Promise((resolve, reject) => {
    const subscription = watched.subscribe({
      next(result) {
        if (result.data && !result.loading && holds(result.data)) {
          queueMicrotask(() => subscription.unsubscribe())
          resolve(result.data)
        }
      },
      error: reject,
    })
  })
}

const ids = (data) => data.customer.orders.edges.map((edge) => edge.node.id)

test('Apollo Client walks a connection while orders are placed', { timeout: 60_000 }, async () => {
  const shop = await openShop(10)
  const { client, requests } = newClient()
  const watched = client.watchQuery({ query: page, variables: { customer: shop.customer } })
  const expected = [...shop.placed]

  let data = await seen(watched, () => true)
  while (data.customer.orders.pageInfo.hasNextPage) {
    const had = ids(data).length
    await placeOrder(shop)
    await watched.fetchMore({ variables: { after: data.customer.orders.pageInfo.endCursor } })
    data = await seen(watched, (now) => ids(now).length > had)
  }
  assert.deepEqual(ids(data), expected, 'the pages, merged in the cache')
  assert.equal(requests.length, 3, 'one request a page')

  const fresh = await client.query({ query: page, variables: { customer: shop.customer }, fetchPolicy: 'network-only' })
  assert.deepEqual(ids(fresh.data).slice(0, 4), shop.placed.slice(0, 4), 'the new orders come first')
})

test("a mutation's answer changes the order wherever Apollo Client shows it", { timeout: 60_000 }, async () => {
  const shop = await openShop(3)
  const { client, requests } = newClient()
  const watched = client.watchQuery({ query: page, variables: { customer: shop.customer } })
  await seen(watched, () => true)

  await client.mutate({
    mutation: gql`
      mutation Confirm($id: ID!) {
        confirmOrder(input: { orderId: $id }) {
          order {
            id
            status
            version
          }
          userErrors {
            code
          }
        }
      }
    `,
    variables: { id: shop.placed[1] },
  })
  const data = await seen(watched, (now) => now.customer.orders.edges[1].node.status === 'CONFIRMED')
  assert.deepEqual(data.customer.orders.edges.map((edge) => edge.node.status), ['PENDING', 'CONFIRMED', 'PENDING'])
  assert.equal(requests.length, 2)
})

test('Apollo Client sends persisted queries by GET, and their text once', { timeout: 60_000 }, async () => {
  const shop = await openShop(1)
  // A name of its own, so that no earlier run has told the server the text.
  const query = gql(`query Persisted_${shop.customer.replace('-', '_')}($customer: ID!) { customer(id: $customer) { id name } }`)
  const sha256 = (text) => createHash('sha256').update(text).digest('hex')
  const persisted = () => new PersistedQueryLink({ sha256, useGETForHashedQueries: true })

  const first = newClient(persisted())
  const { data } = await first.client.query({ query, variables: { customer: shop.customer } })
  assert.equal(data.customer.name, 'Client')
  assert.deepEqual(first.requests.map((r) => [r.method, r.withText]), [['GET', false], ['POST', true]], 'a miss')

  const second = newClient(persisted())
  const again = await second.client.query({ query, variables: { customer: shop.customer } })
  assert.equal(again.data.customer.name, 'Client')
  assert.deepEqual(second.requests.map((r) => [r.method, r.withText]), [['GET', false]], 'a hit')
})

test('Apollo Client is told what is wrong', { timeout: 60_000 }, async () => {
  const { client } = newClient()
  for (const [query, code] of [
    [gql`{ nonsense }`, 'BAD_USER_INPUT'],
    [gql`{ orders(first: 0) { nodes { id } } }`, 'BAD_USER_INPUT'],
  ]) {
    await assert.rejects(client.query({ query }), (error) => {
      assert.equal(error.errors?.[0].extensions.code, code, String(error))
      return true
    })
  }
})
