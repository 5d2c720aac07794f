import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Client, fetchExchange, gql } from '@urql/core'
import { cacheExchange } from '@urql/exchange-graphcache'
import { relayPagination } from '@urql/exchange-graphcache/extras'
import { persistedExchange } from '@urql/exchange-persisted'
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
            total {
              amount
            }
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

function newClient({ persisted = false, method = 'POST' } = {}) {
  const { requests, fetcher } = recorded()
  const cache = cacheExchange({
    resolvers: { Customer: { orders: relayPagination() } },
    keys: { Money: () => null, Address: () => null, Product: (product) => product.sku },
  })
  const client = new Client({
    url: endpoint,
    fetch: fetcher,
    preferGetMethod: method === 'GET' ? 'force' : false,
    exchanges: persisted ? [cache, persistedExchange({ preferGetForPersistedQueries: 'force' }), fetchExchange] : [cache, fetchExchange],
  })
  return { client, requests }
}

async function ask(client, query, variables, requestPolicy = 'cache-first') {
  const { data, error } = await client.query(query, variables, { requestPolicy }).toPromise()
  if (error) {
    throw error
  }
  return data
}

const ids = (data) => data.customer.orders.edges.map((edge) => edge.node.id)

test('urql walks a connection while orders are placed', { timeout: 60_000 }, async () => {
  const shop = await openShop(10)
  const { client, requests } = newClient()
  const expected = [...shop.placed]

  let data = await ask(client, page, { customer: shop.customer })
  while (data.customer.orders.pageInfo.hasNextPage) {
    await placeOrder(shop)
    data = await ask(client, page, { customer: shop.customer, after: data.customer.orders.pageInfo.endCursor })
  }
  assert.deepEqual(ids(data), expected, 'the pages, merged in the cache')
  assert.equal(requests.length, 3, 'one request a page')
  assert.deepEqual(ids(await ask(client, page, { customer: shop.customer }, 'cache-only')), expected, 'the cache alone')
})

test('urql sends queries by GET', { timeout: 60_000 }, async () => {
  const shop = await openShop(1)
  const { client, requests } = newClient({ method: 'GET' })
  const data = await ask(client, page, { customer: shop.customer })
  assert.deepEqual(ids(data), shop.placed)
  assert.deepEqual(requests.map((r) => r.method), ['GET'])
})

test('urql sends persisted queries by GET, and their text once', { timeout: 60_000 }, async () => {
  const shop = await openShop(1)
  // A name of its own, so that no earlier run has told the server the text.
  const query = `query Persisted_${shop.customer.replace('-', '_')}($customer: ID!) { customer(id: $customer) { id name } }`

  const first = newClient({ persisted: true })
  const data = await ask(first.client, query, { customer: shop.customer })
  assert.equal(data.customer.name, 'Client')
  assert.deepEqual(first.requests.map((r) => r.withText), [false, true], 'a miss')
  assert.equal(first.requests[0].method, 'GET')

  const second = newClient({ persisted: true })
  const again = await ask(second.client, query, { customer: shop.customer })
  assert.equal(again.customer.name, 'Client')
  assert.deepEqual(second.requests.map((r) => [r.method, r.withText]), [['GET', false]], 'a hit')
})

test('urql is told what is wrong', { timeout: 60_000 }, async () => {
  const { client } = newClient()
  for (const query of ['{ nonsense }', '{ orders(first: 0) { nodes { id } } }']) {
    await assert.rejects(ask(client, query), (error) => {
      assert.equal(error.graphQLErrors[0].extensions.code, 'BAD_USER_INPUT', String(error))
      return true
    })
  }
})
