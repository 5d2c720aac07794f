import assert from 'node:assert/strict'
import { once } from 'node:events'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createHmac, randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, describe, test } from 'node:test'
import { API } from 'typescript/unstable/sync'
import { SyntaxKind } from 'typescript/unstable/ast'
import { isBindingElement, isIdentifier, isParameterDeclaration, isVariableDeclaration } from 'typescript/unstable/ast/is'
import WebSocket from 'ws'
import { load, makeFolder, run } from './folder.js'
import { hasDynamoDB, start, startOnDynamoDB } from './server.js'
import { send } from './shop.js'

const limit = { timeout: 120_000 }
const folder = makeFolder()
cpSync(join(import.meta.dirname, 'shop-client'), folder, { recursive: true })
run(folder, 'graphql-codegen', '--config', 'codegen.config.mjs')
const compile = () => run(folder, 'tsc')
compile()

const compiled = (name) => load(join(folder, 'out', `${name}.js`))
const { orderDetails, cancelItems, orderInParcel, recordPayment, sendBack, ship, tag, taggedOrders, takeBack, warehousesFor } = await compiled('backOffice')
const { categories, products } = await compiled('catalog')
const { checkout } = await compiled('checkout')
const { claimOrders, dashboard, eraseCustomer, moveOrder } = await compiled('desk')
const { follow } = await compiled('live')
const { orderHistory, spendingOfYear } = await compiled('account')
const { connect } = await compiled('request')

test('nothing in the sources and the generated types is any', limit, () => {
  const api = new API({ cwd: folder })
  try {
    const [{ program, checker }] = api.updateSnapshot({ openProject: join(folder, 'tsconfig.json') }).getProjects()
    const any = checker.getAnyType().flags
    const own = program.getSourceFileNames().filter((name) => name.startsWith(folder))
    assert.ok(own.includes(join(folder, 'gql/graphql.ts')))
    for (const name of own) {
      const visit = (node) => {
        assert.notEqual(node.kind, SyntaxKind.AnyKeyword, `${name} has the word any at ${node.pos}`)
        const declares = isVariableDeclaration(node) || isParameterDeclaration(node) || isBindingElement(node)
        if (declares && isIdentifier(node.name)) {
          assert.ok(!(checker.getTypeAtLocation(node.name).flags & any), `${name}: ${node.name.text} at ${node.pos} is any`)
        }
        node.forEachChild(visit)
      }
      program.getSourceFile(name).forEachChild(visit)
    }
  } finally {
    api.close()
  }
})

test('a type of user error without a case is a compile error', limit, () => {
  const path = join(folder, 'refusals.ts')
  const source = readFileSync(path, 'utf8')
  writeFileSync(path, source.replace("    case 'EmailTaken':\n", ''))
  assert.throws(compile, (error) => /TS1360/.test(error.stdout))
  writeFileSync(path, source)
})

/** Everything of all pages. */
async function all(pages) {
  const found = []
  for await (const page of pages) {
    found.push(...page)
  }
  return found
}

const cents = (amount) => Math.round(Number(amount) * 100)
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0)

const engines = [
  { name: 'the embedded store', open: start },
  { name: 'DynamoDB', open: startOnDynamoDB, skip: !hasDynamoDB && process.env.CI !== 'true' && 'AWS_ENDPOINT_URL_DYNAMODB is not set' },
]
for (const { name, open, skip } of engines) {
  describe(`the shop's client, on ${name}`, { ...limit, skip }, () => {
    const customerId = 'cust_01'
    const shippingAddress = { recipient: 'Alice Chen', line1: '1 Pine Street', city: 'Seattle', region: 'WA', postalCode: '98101', countryCode: 'US' }
    let child, endpoint, request, expiring
    before(async () => {
      ;({ child, endpoint } = await open())
      request = connect(endpoint)
      expiring = (await checkout(request, { ...cart('prod_101', 1), expiresAt: new Date(Date.now() + 2000).toISOString() }, async () => true)).order
    })
    after(() => child?.kill())

    const ask = (query, variables) => send(query, variables, endpoint)
    const cart = (sku, quantity) => ({ customerId, items: [{ sku, quantity }], shippingAddress })
    const place = async (sku, quantity) => {
      const placed = await checkout(request, cart(sku, quantity), async () => true)
      assert.equal(placed.kind, 'placed', JSON.stringify(placed))
      return placed.order
    }
    const setQuantity = (order, sku, quantity) =>
      ask('mutation ($input: SetOrderItemInput!) { setOrderItem(input: $input) { userErrors { message } } }', { input: { orderId: order.id, sku, quantity } })

    test('finds products by category, by the beginning of the name, and by both', async () => {
      const catalog = await all(products(request, {}, 2))
      for (const { name: category, productCount } of await all(categories(request, 1))) {
        const found = await all(products(request, { category }, 2))
        assert.deepEqual(found, catalog.filter((p) => p.category === category).sort((a, b) => (a.sku < b.sku ? -1 : 1)), category)
        assert.equal(found.length, productCount, category)
      }
      const [{ category, ...first }] = catalog
      const namePrefix = first.name.slice(0, 3).toLowerCase()
      for (const filter of [{ namePrefix }, { namePrefix, category }]) {
        assert.equal((await all(products(request, filter)))[0].sku, first.sku)
      }
    })

    test('asks again when a price changes between quote and order', async () => {
      const [product] = await all(products(request, { namePrefix: 'wireless' }))
      const amount = '31.50'
      const totals = []
      const placed = await checkout(request, cart(product.sku, 2), async ({ total }) => {
        totals.push(cents(total.amount))
        if (totals.length === 1) {
          await ask('mutation ($input: UpdateProductInput!) { updateProduct(input: $input) { userErrors { message } } }', { input: { sku: product.sku, unitPrice: { amount } } })
        }
        return true
      })
      assert.deepEqual(totals, [2 * cents(product.unitPrice.amount), 2 * cents(amount)])
      assert.equal(placed.kind, 'placed')
      assert.equal(cents(placed.order.total.amount), totals[1])
    })

    test('places an order of the back office with shipping, tax, a discount and a billing address', async () => {
      const adjustments = [
        { kind: 'SHIPPING', label: 'Parcel', amount: '4.90' },
        { kind: 'TAX', label: 'VAT', amount: '2.50' },
        { kind: 'DISCOUNT', label: 'Spring sale', amount: '-3', line: 'prod_100' },
        { kind: 'TAX', label: 'Levy', amount: '1', included: true },
      ]
      const quotes = []
      const placed = await checkout(request, { ...cart('prod_100', 2), adjustments, billingAddress: shippingAddress, contact: { email: 'desk@example.com' } }, async (quote) => quotes.push(quote))
      const [{ subtotal, total }] = quotes
      assert.equal(cents(total.amount), cents(subtotal.amount) + 440)
      assert.deepEqual([placed.kind, placed.order.total], ['placed', total])
    })

    test('orders nothing when the customer does not agree, or when there are too few pieces', async () => {
      const [{ sku, available }] = await all(products(request, { namePrefix: 'keyboard' }))
      assert.deepEqual(await checkout(request, cart(sku, 1), async () => false), { kind: 'abandoned' })
      const refused = await checkout(request, cart(sku, available + 1), async () => assert.fail('nobody is asked'))
      assert.deepEqual(refused, { kind: 'refused', reactions: [{ kind: 'lowerQuantity', sku, available }] })
    })

    test('orders once where the answer is lost', async () => {
      const proxy = createServer(async (asked, answer) => {
        const body = await text(asked)
        const response = await fetch(endpoint, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
        const data = await response.text()
        if (body.includes('placeOrder') && ++attempts === 1) {
          asked.socket.destroy()
        } else {
          answer.end(data)
        }
      })
      let attempts = 0
      await once(proxy.listen(0, '127.0.0.1'), 'listening')
      try {
        const count = async () => (await all(orderHistory(request, customerId))).length
        const before = await count()
        const lossy = connect(`http://127.0.0.1:${proxy.address().port}`, {}, async () => {})
        const placed = await checkout(lossy, cart('prod_100', 1), async () => true)
        assert.equal(placed.kind, 'placed')
        assert.deepEqual([attempts, await count()], [2, before + 1])
      } finally {
        proxy.close()
        proxy.closeAllConnections()
      }
    })

    test('moves an order, which somebody else has changed, and the dashboard follows', async () => {
      const before = await dashboard(request)
      const order = await place('prod_100', 1)
      await setQuantity(order, 'prod_100', 2)
      const seen = []
      const look = (answer) => async (now) => {
        seen.push(now.version)
        return answer
      }
      const givenUp = await moveOrder(request, order, { to: 'CONFIRMED' }, look(false))
      assert.deepEqual([givenUp.kind, givenUp.order.status, givenUp.order.version], ['givenUp', 'PENDING', order.version + 1])
      const confirmed = await moveOrder(request, order, { to: 'CONFIRMED' }, look(true))
      assert.deepEqual([confirmed.kind, confirmed.order.status], ['moved', 'CONFIRMED'])
      assert.deepEqual(seen, [order.version + 1, order.version + 1])
      const shipped = await moveOrder(request, confirmed.order, { to: 'SHIPPED', parcel: { warehouseId: 'wh_sea', carrier: 'UPS' } }, look(true))
      const delivered = await moveOrder(request, shipped.order, { to: 'DELIVERED' }, look(true))
      assert.deepEqual([delivered.kind, delivered.order.status], ['moved', 'DELIVERED'])
      const again = await moveOrder(request, delivered.order, { to: 'CONFIRMED' }, look(true))
      assert.deepEqual(again, { kind: 'refused', reactions: [{ kind: 'otherMove', allowed: [] }] })
      assert.equal(seen.length, 2)
      assert.deepEqual(await dashboard(request), { ...before, DELIVERED: before.DELIVERED + 1 })
    })

    test('follows orders past a cut connection and misses nothing', async () => {
      const sku = 'prod_100'
      const order = await place(sku, 1)
      const sockets = []
      class Watched extends WebSocket {
        constructor(...args) {
          super(...args)
          sockets.push(this)
        }
      }
      const whileCut = async () => {
        await setQuantity(order, sku, 3)
        await setQuantity(order, sku, 4)
      }
      const updates = follow({ url: endpoint.replace(/^http/, 'ws'), webSocketImpl: Watched }, customerId, order.timeline.nodes[0].id, whileCut)
      const ids = []
      const next = async () => {
        const { value } = await updates.next()
        ids.push(value.id)
      }
      await setQuantity(order, sku, 2)
      await next()
      sockets[0].terminate()
      await next()
      await next()
      await setQuantity(order, sku, 5)
      await next()
      await updates.return()
      const timeline = await ask('query ($id: ID!) { order(id: $id) { timeline { nodes { id } } } }', { id: order.id })
      assert.deepEqual(ids, timeline.order.timeline.nodes.map(({ id }) => id).slice(1), 'each update once')
      assert.equal(sockets.length, 2)
      await assert.rejects(follow({ url: endpoint.replace(/^http/, 'ws'), webSocketImpl: WebSocket }, 'nobody', null).next(), ({ codes }) => codes[0] === 'NOT_FOUND')
    })

    test('pages through the orders of a customer, whose spending of each year is their sum', async () => {
      await place('prod_100', 1)
      const orders = await all(orderHistory(request, customerId, 2))
      assert.deepEqual(orders.map(({ id }) => id), orders.map(({ id }) => id).sort().reverse(), 'the newest first, each once')
      assert.deepEqual(orders, await all(orderHistory(request, customerId, 100)))
      const years = new Map(orders.map(({ placedAt }) => [Number(placedAt.slice(0, 4)), []]))
      assert.equal(years.size, 2)
      for (const order of orders) {
        if (order.status !== 'CANCELLED') {
          years.get(Number(order.placedAt.slice(0, 4))).push(cents(order.total.amount))
        }
      }
      for (const [year, totals] of years) {
        const [{ amount, currencyCode }, ...others] = await spendingOfYear(request, customerId, year)
        assert.deepEqual([cents(amount), currencyCode, others], [sum(totals), 'USD', []])
      }
      assert.deepEqual(await spendingOfYear(request, customerId, 1999), [])
    })

    test('sells with tax, ships two parcels from two warehouses, takes two of three pieces back and refunds one', async () => {
      const sku = `lamp-${randomUUID()}`
      for (const warehouseId of ['wh_sea', 'wh_pdx']) {
        await ask(
          `mutation ($product: CreateProductInput!, $level: SetInventoryLevelInput!) {
            createProduct(input: $product) { userErrors { code } }
            setInventoryLevel(input: $level) { userErrors { code message } }
          }`,
          { product: { sku, name: 'Lamp', category: 'Lamps', unitPrice: { amount: '10', currencyCode: 'USD' }, idempotencyKey: sku }, level: { sku, warehouseId, quantity: 3 } },
        )
      }
      const stock = async () => {
        const { product } = await ask('query ($sku: ID!) { product(sku: $sku) { available totalInventory } }', { sku })
        return [product.available, product.totalInventory]
      }
      const adjustments = [
        { kind: 'SHIPPING', label: 'Standard', amount: '4.90' },
        { kind: 'DISCOUNT', label: 'Spring sale', amount: '-3' },
        { kind: 'TAX', label: 'Sales tax', amount: '2.10' },
      ]
      const { order } = await checkout(request, { ...cart(sku, 5), adjustments }, async () => true)
      const orderId = order.id
      assert.equal(cents(order.total.amount), 5400)
      assert.deepEqual(await stock(), [1, 6])

      const event = { orderId, kind: 'CAPTURE', amount: { amount: '54', currencyCode: 'USD' }, provider: 'stripe', reference: randomUUID() }
      const paid = await recordPayment(request, event)
      assert.deepEqual(await recordPayment(request, event), paid, 'the event comes twice')
      assert.equal((await recordPayment(request, { ...event, amount: { amount: '53' } })).kind, 'refused')
      await moveOrder(request, order, { to: 'CONFIRMED' }, async () => true)

      const trackingNumber = `1Z-${randomUUID()}`
      const parcel = { orderId, withoutAddress: true, warehouseId: 'wh_sea', carrier: 'UPS', trackingNumber }
      assert.deepEqual(await warehousesFor(request, orderId, ['wh_sea', 'wh_pdx']), [], 'no warehouse has 5 pieces')
      assert.equal((await ship(request, { ...parcel, lines: [{ sku, quantity: 4 }] })).reactions[0].kind, 'lowerQuantity')
      assert.equal((await ship(request, { ...parcel, lines: [{ sku, quantity: 2 }] })).kind, 'done')
      assert.deepEqual(await warehousesFor(request, orderId, ['wh_sea', 'wh_pdx']), ['wh_pdx'])
      const part = await orderDetails(request, orderId)
      assert.deepEqual([part.status, part.fulfillmentState, part.items.nodes[0].shipped, part.paymentState], ['CONFIRMED', 'PARTIALLY_FULFILLED', 2, 'PAID'])
      assert.equal((await ship(request, { ...parcel, warehouseId: 'wh_pdx', trackingNumber: `${trackingNumber}-2`, lines: [{ sku, quantity: 1 }] })).kind, 'done')
      assert.deepEqual(await Promise.all([trackingNumber, `${trackingNumber}-2`, 'none'].map((number) => orderInParcel(request, number))), [orderId, orderId, null])

      const word = `late-${randomUUID()}`
      assert.deepEqual(await tag(request, orderId, [word, 'gift']), { kind: 'done', value: ['gift', word] })
      assert.deepEqual(await tag(request, orderId, [], ['gift']), { kind: 'done', value: [word] })
      assert.equal((await tag(request, orderId, ['a#b'])).kind, 'refused')
      assert.deepEqual([await taggedOrders(request, word), await taggedOrders(request, `${word}-2`)], [[orderId], []])

      const refund = (amount, returnId) => recordPayment(request, { ...event, kind: 'REFUND', amount: { amount, currencyCode: 'USD' }, reference: randomUUID(), returnId })
      const missing = [{ sku, quantity: 2 }]
      assert.equal((await cancelItems(request, orderId, missing)).kind, 'refused', 'they are paid')
      assert.equal((await refund('20')).kind, 'done')
      assert.equal((await cancelItems(request, orderId, missing)).kind, 'done')
      const shipped = await orderDetails(request, orderId)
      assert.deepEqual([shipped.status, cents(shipped.total.amount), shipped.fulfillments.nodes.length], ['SHIPPED', 3400, 2])

      const back = await sendBack(request, orderId, [{ sku, quantity: 2, reason: 'too bright' }])
      assert.equal((await sendBack(request, orderId, [{ sku, quantity: 2, reason: 'too dark' }])).kind, 'refused')
      const received = await takeBack(request, back.value, 'wh_pdx', [{ sku, restocked: 1 }])
      assert.deepEqual([received.value.status, cents(received.value.amount.amount)], ['RECEIVED', 2000])
      assert.equal((await refund('20.01', back.value.id)).kind, 'refused')
      assert.equal((await refund('10', back.value.id)).kind, 'done')
      const last = await orderDetails(request, orderId)
      assert.deepEqual(last.items.nodes, [{ sku, quantity: 3, shipped: 3, returned: 2, cancelled: 2 }])
      assert.deepEqual([last.paymentState, cents(last.outstanding.amount), cents(last.returns.nodes[0].refunded.amount), last.payments.nodes.length], ['PARTLY_REFUNDED', 0, 1000, 3])
      assert.deepEqual(await stock(), [4, 4])
    })

    test('claims the orders of a guest', async () => {
      const input = { id: 'gina', name: 'Gina', email: 'gina@example.com' }
      const { items } = cart('prod_100', 1)
      const placed = []
      for (const email of [input.email, 'Gina@example.com']) {
        placed.push((await checkout(request, { items, guest: { email } }, async () => true)).order.id)
      }
      await ask('mutation ($input: CreateCustomerInput!) { createCustomer(input: $input) { userErrors { message } } }', { input })
      assert.deepEqual((await claimOrders(request, input.id)).sort(), placed.sort())
      assert.deepEqual(await claimOrders(request, input.id), [])
    })

    test('erases a customer, but not the orders', async () => {
      const eve = { id: 'eve', name: 'Eve Zephyr', email: 'zephyr@example.com' }
      const create = (input) => ask('mutation ($input: CreateCustomerInput!) { createCustomer(input: $input) { userErrors { message } } }', { input })
      await create(eve)
      const order = { ...cart('prod_100', 1), customerId: eve.id, shippingAddress: { ...shippingAddress, recipient: eve.name }, contact: { email: eve.email } }
      const placed = []
      for (let i = 0; i < 2; i++) {
        placed.push((await checkout(request, order, async () => true)).order)
      }
      assert.deepEqual(await eraseCustomer(request, eve.id), [])
      for (const { id, total } of placed) {
        const { order: left } = await ask('query ($id: ID!) { order(id: $id) { customer { id } total { amount currencyCode } shippingAddress { recipient } contact { email } timeline { nodes { type note } } } }', { id })
        assert.deepEqual([left.customer, left.total, left.shippingAddress, left.contact, left.timeline.nodes.at(-1).type], [null, total, null, null, 'ERASED'])
      }
      assert.equal((await checkout(request, order, async () => true)).kind, 'refused')
      const found = await ask('{ customers(namePrefix: "eve zephyr") { nodes { id } } customerByEmail(email: "zephyr@example.com") { id } }')
      assert.deepEqual(found, { customers: { nodes: [] }, customerByEmail: null })
      assert.equal((await eraseCustomer(request, 'nobody'))[0].field, 'input.customerId')
      await create({ ...eve, id: 'eve2' })
    })

    test('an order that nobody paid for expires', async () => {
      let order
      do {
        await new Promise((resolve) => setTimeout(resolve, 500))
        order = await orderDetails(request, expiring.id)
      } while (order.status === 'PENDING')
      assert.deepEqual([order.status, order.paymentState], ['CANCELLED', 'UNPAID'])
    })
  })
}

test('a customer reads the words for the customer, and no others by any path', limit, async () => {
  const secret = 'a secret of thirty-two characters'
  const { child, endpoint } = await start({ ORDERGRAPH_AUTH: 'jwt', ORDERGRAPH_JWT_SECRET: secret, ORDERGRAPH_JWT_ISSUER: 'test', ORDERGRAPH_JWT_AUDIENCE: 'test', ORDERGRAPH_CURSOR_KEY: 'a key of this test' })
  const bearer = (claims) => {
    const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const signed = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ iss: 'test', aud: 'test', sub: 'me', exp: Math.floor(Date.now() / 1000) + 600, ...claims })}`
    return { authorization: `Bearer ${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}` }
  }
  const staff = bearer({ role: 'STAFF', sub: 'sam' })
  const customer = bearer({ role: 'CUSTOMER', customer_id: 'cust_01' })
  /** The whole answer as a text, with its explain part and its errors. */
  const ask = async (headers, query) => (await fetch(endpoint, { method: 'POST', headers: { 'content-type': 'application/json', accept: 'application/json', ...headers }, body: JSON.stringify({ query }) })).text()
  try {
    const request = connect(endpoint, staff)
    const { order } = await checkout(request, { customerId: 'cust_01', items: [{ sku: 'prod_100', quantity: 1 }] }, async () => true)
    const follower = connectedFollower(endpoint, customer, order.timeline.nodes[0].id)
    const id = JSON.stringify(order.id)
    const written = [
      `mutation { addOrderNote(input: {orderId: ${id}, note: "hidden: fraud score 92", visibility: STAFF, idempotencyKey: "n1"}) { userErrors { message } } }`,
      `mutation { confirmOrder(input: {orderId: ${id}, note: "hidden: paid in cash"}) { userErrors { message } } }`,
      `mutation { holdOrder(input: {orderId: ${id}, reason: "hidden: call the bank"}) { userErrors { message } } }`,
      `mutation { tagOrder(input: {orderId: ${id}, add: ["hidden"]}) { userErrors { message } } }`,
      `mutation { addOrderNote(input: {orderId: ${id}, note: "We call you tomorrow.", visibility: CUSTOMER, idempotencyKey: "n2"}) { userErrors { message } } }`,
    ]
    for (const mutation of written) {
      assert.match(await ask(staff, mutation), /"userErrors":\[\]/, mutation)
    }
    const timeline = 'timeline { nodes { type note } }'
    assert.match(await ask(staff, `{ order(id: ${id}) { tags hold { reason } ${timeline} } }`), /"tags":\["hidden"\].*call the bank.*fraud score/)
    const paths = [
      `{ order(id: ${id}) { hold { since } ${timeline} } }`,
      `{ customer(id: "cust_01") { orders { nodes { ${timeline} } } } }`,
      `{ viewer { customer { order(id: ${id}) { ${timeline} } } } }`,
      `{ orderItem(orderId: ${id}, productId: "prod_100") { order { ${timeline} } } }`,
      `query { _entities(representations: [{__typename: "Order", id: ${id}}]) { ... on Order { ${timeline} } } }`,
      `mutation { updateShippingAddress(input: {orderId: ${id}, shippingAddress: {recipient: "A", line1: "1", city: "P", countryCode: "US"}}) { order { ${timeline} } userErrors { message } } }`,
      `mutation { cancelOrder(input: {orderId: ${id}}) { order { ${timeline} } userErrors { message } } }`,
      `{ order(id: ${id}) { tags } }`,
      `{ order(id: ${id}) { hold { reason } } }`,
      `{ ordersByTag(tag: "hidden") { nodes { id } } }`,
    ]
    for (const query of paths) {
      const answer = await ask(customer, query)
      assert.doesNotMatch(answer.replaceAll('tag: \\"hidden', ''), /hidden|fraud|in cash|the bank/, query)
      assert.match(answer, /We call you tomorrow|FORBIDDEN|order is on hold/, query)
    }
    const live = await follower
    assert.doesNotMatch(live, /hidden|fraud|in cash|the bank/)
  } finally {
    child.kill()
  }
})

test('an order is found by its reference in another system, which no other order has', limit, async () => {
  const extension = join(folder, 'shop.graphqls')
  writeFileSync(extension, 'extend type Order { reference: String @field(setBy: [SERVICE, STAFF]) @unique(query: "orderByReference") }')
  const { child, endpoint } = await start({ ORDERGRAPH_SCHEMA_EXTENSION: extension })
  try {
    const place = (reference) =>
      send('mutation ($input: PlaceOrderInput!) { placeOrder(input: $input) { order { id } userErrors { code } } }', { input: { customerId: 'cust_01', items: [{ sku: 'prod_100', quantity: 1 }], reference } }, endpoint)
    const { placeOrder } = await place('ERP-4711')
    const found = (reference) => send('query ($reference: String!) { orderByReference(reference: $reference) { id } }', { reference }, endpoint)
    assert.deepEqual([(await found('ERP-4711')).orderByReference, (await found('ERP-4712')).orderByReference], [placeOrder.order, null])
    await assert.rejects(place('ERP-4711'), /ALREADY_EXISTS/)
  } finally {
    child.kill()
  }
})

/** Follows an order of a customer until the note for the customer, and returns all updates as a text. */
async function connectedFollower(endpoint, connectionParams, after) {
  const seen = []
  for await (const update of follow({ url: endpoint.replace(/^http/, 'ws'), webSocketImpl: WebSocket, connectionParams }, 'cust_01', after)) {
    seen.push(update)
    if (seen.length === 5) {
      return JSON.stringify(seen)
    }
  }
}
