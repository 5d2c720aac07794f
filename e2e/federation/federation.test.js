import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'

import { parse } from 'graphql'

import { gateways } from './gateways.js'
import { startLoyalty, typeDefs } from './loyalty.js'
import { ask, customer, hundredOrders, startCounting } from './orderbook.js'

const nobody = '01HVMK3P2Q0000000000000009'

for (const [name, start] of Object.entries(gateways)) {
  describe(`through ${name}`, { timeout: 120_000 }, () => {
    let ids
    let orderbook
    let loyalty
    let gateway

    before(async () => {
      ids = await hundredOrders()
      orderbook = await startCounting()
      loyalty = await startLoyalty()
      const { _service } = await ask('{ _service { sdl } }')
      gateway = await start([
        { name: 'orders', url: orderbook.url, typeDefs: parse(_service.sdl) },
        { name: 'loyalty', url: loyalty.url, typeDefs },
      ])
    })

    after(async () => {
      await gateway?.stop()
      await loyalty?.stop()
      await orderbook?.stop()
    })

    /** Returns the response to a query, with the gateway's requests to the order book, and the DynamoDB requests of each. */
    async function run(query, variables) {
      orderbook.take()
      const answer = await gateway.ask(query, variables)
      const requests = orderbook.take()
      for (const request of requests) {
        assert.equal(request.error, undefined)
        assert.equal(request.method, 'POST')
        assert.equal(request.status, 200)
      }
      return {
        ...answer,
        entities: requests.map(({ query }) => /\b_entities\b/.test(query)),
        dynamodb: requests.map(({ explain }) => explain.requests.map((r) => `${r.accessPattern} ${r.operation}`)),
        roundTrips: requests.map(({ explain }) => explain.totals.roundTrips),
        refused: requests.flatMap(({ errors }) => errors ?? []),
      }
    }

    test('100 orders by reference are one request, and one BatchGetItem', async () => {
      const { data, errors, entities, dynamodb } = await run(
        `query ($ids: [ID!]!) { parcels(ids: $ids) { id tracking status total { amount currencyCode } items { nodes { name } } } }`,
        { ids },
      )
      assert.equal(errors, undefined)
      assert.deepEqual(data.parcels.map(({ id }) => id), ids)
      assert.deepEqual(data.parcels[99], {
        id: ids[99],
        tracking: `parcel of ${ids[99]}`,
        status: 'PENDING',
        total: { amount: '4.00', currencyCode: 'USD' },
        items: { nodes: [{ name: 'Mug' }] },
      })
      assert.deepEqual(entities, [true])
      assert.deepEqual(dynamodb, [['AP1 BatchGetItem']])
    })

    test('what they refer to is one more, and one round trip more', async () => {
      const { data, errors, entities, dynamodb, roundTrips } = await run(
        `query ($ids: [ID!]!) { parcels(ids: $ids) { status items { nodes { product { name available } } } } }`,
        { ids },
      )
      assert.equal(errors, undefined)
      assert.equal(data.parcels[0].items.nodes[0].product.name, 'Mug')
      assert.deepEqual(entities, [true])
      assert.deepEqual(dynamodb, [['AP1 BatchGetItem', 'AP10 GetItem']])
      assert.deepEqual(roundTrips, [2])
    })

    test('a query that begins here comes here once', async () => {
      const { data, errors, entities, dynamodb, roundTrips } = await run(
        `query ($customer: ID!) {
          customer(id: $customer) {
            name
            loyaltyPoints
            rewards { edges { node { name worth { amount } } } pageInfo { hasNextPage } }
            orders(first: 100) { nodes { id status tracking insurance { amount currencyCode } } pageInfo { hasNextPage } }
          }
        }`,
        { customer },
      )
      assert.equal(errors, undefined)
      assert.equal(data.customer.loyaltyPoints, customer.length)
      assert.equal(data.customer.rewards.edges[0].node.worth.amount, '4.00')
      assert.equal(data.customer.orders.nodes.length, 100)
      for (const { id, tracking, insurance } of data.customer.orders.nodes) {
        assert.equal(tracking, `parcel of ${id}`)
        // It @requires the order's total, which comes with the rest.
        assert.deepEqual(insurance, { amount: '8.00', currencyCode: 'USD' })
      }
      assert.deepEqual(entities, [false])
      assert.deepEqual(dynamodb.map((requests) => requests.sort()), [['AP2 Query', 'AP6 GetItem']])
      assert.deepEqual(roundTrips, [1])
    })

    test('entities of several types are answered each', async () => {
      const { data, errors, dynamodb } = await run(
        `query ($typenames: [String!]!, $keys: [ID!]!) {
          earned(typenames: $typenames, keys: $keys) {
            __typename
            ... on Customer { name loyaltyPoints }
            ... on Order { status tracking }
            ... on Product { name points }
          }
        }`,
        { typenames: ['Order', 'Customer', 'Product', 'Order'], keys: [ids[0], customer, 'federation-product', ids[0]] },
      )
      assert.equal(errors, undefined)
      const order = { __typename: 'Order', status: 'PENDING', tracking: `parcel of ${ids[0]}` }
      assert.deepEqual(data.earned, [
        order,
        { __typename: 'Customer', name: 'Fay', loyaltyPoints: customer.length },
        { __typename: 'Product', name: 'Mug', points: 1 },
        order,
      ])
      assert.deepEqual(dynamodb.flat().sort(), ['AP1 GetItem', 'AP10 GetItem', 'AP6 GetItem'])
    })

    test('what does not exist is null, and the others are answered', async () => {
      const { data, refused, entities, dynamodb } = await run(
        `query ($ids: [ID!]!) { parcels(ids: $ids) { id customer { name } itemCount } }`,
        { ids: [ids[0], nobody, ids[1]] },
      )
      // Hive Gateway itself reports that itemCount must not be null. The order book reports no error.
      assert.deepEqual(refused, [])
      const whole = (id) => ({ id, customer: { name: 'Fay' }, itemCount: 1 })
      assert.deepEqual(data.parcels, [whole(ids[0]), null, whole(ids[1])])
      assert.deepEqual(entities, [true])
      assert.deepEqual(dynamodb, [['AP1 BatchGetItem', 'AP6 GetItem']])
    })

    test('what cannot be an id is null, and the others are answered', async () => {
      const { data, refused } = await run(
        `query ($ids: [ID!]!) { parcels(ids: $ids) { id status } }`,
        { ids: [ids[0], 'x', ids[1]] },
      )
      assert.deepEqual(data.parcels, [{ id: ids[0], status: 'PENDING' }, null, { id: ids[1], status: 'PENDING' }])
      assert.deepEqual(refused, [])
    })
  })
}
