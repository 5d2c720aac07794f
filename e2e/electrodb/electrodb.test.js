import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { DynamoDBClient, ScanCommand } from '@aws-sdk/client-dynamodb'
import { entities, identifiers, lowerCaseCustomer } from './entities.js'
import { engines, serve } from './server.js'

for (const [name, startEngine] of Object.entries(engines)) {
  suite(`ElectroDB and Ordergraph write the same table: ${name}`, () => {
    let engine, client, ordergraph, shop, Customer, Order, OrderItem, OrderOfCustomer

    before(async () => {
      engine = await startEngine()
      client = new DynamoDBClient({
        endpoint: engine.aws.AWS_ENDPOINT_URL_DYNAMODB,
        region: engine.aws.AWS_REGION,
        credentials: { accessKeyId: engine.aws.AWS_ACCESS_KEY_ID, secretAccessKey: engine.aws.AWS_SECRET_ACCESS_KEY },
      })
      ordergraph = await serve(engine.aws, identifiers)
      shop = entities(client, ordergraph.table)
      ;({ Customer, Order, OrderItem, OrderOfCustomer } = shop.entities)
    })
    after(() => {
      ordergraph?.stop()
      engine?.stop()
    })

    const ids = (list) => list.map((record) => record.id ?? record.orderId)

    /** The IDs of the orders with a status, as ElectroDB and as Ordergraph list them. */
    async function byStatus(status) {
      const { data } = await Order.query.byStatus({ status }).go({ order: 'desc', pages: 'all' })
      const { ordersByStatus } = await ordergraph.send(`query ($status: OrderStatus!) { ordersByStatus(status: $status, first: 100) { nodes { id } } }`, { status: status.toUpperCase() })
      assert.deepEqual(ids(ordersByStatus.nodes), ids(data), `both list the same ${status} orders`)
      return ids(data)
    }

    /** Checks that both records of an order have a status, and that both programs list it under this status only. */
    async function assertStatus(orderId, customerId, status) {
      assert.equal((await Order.get({ orderId }).go()).data.status, status)
      assert.equal((await OrderOfCustomer.get({ customerId, orderId }).go()).data.status, status)
      const { order, customer } = await ordergraph.send(`query ($id: ID!, $customer: ID!) { order(id: $id) { status } customer(id: $customer) { order(id: $id) { status } } }`, { id: orderId, customer: customerId })
      assert.deepEqual([order.status, customer.order.status], [status.toUpperCase(), status.toUpperCase()])
      for (const other of ['pending', 'confirmed', 'shipped', 'delivered', 'cancelled']) {
        assert.equal((await byStatus(other)).includes(orderId), other === status, `the order is ${status}, not ${other}`)
      }
    }

    const mutate = (field, input) => ordergraph.send(`mutation { ${field}(input: ${input}) { order { id } userErrors { message } } }`)

    test('ElectroDB reads what Ordergraph writes', async () => {
      assert.equal((await Customer.get({ customerId: 'cust_01' }).go()).data.name, 'Alice Chen')
      const { placeOrder } = await ordergraph.send(
        `mutation { placeOrder(input: { customerId: "cust_01", items: [{ sku: "prod_100", quantity: 2 }] }) { order { id total { amount } } userErrors { message } } }`,
      )
      const orderId = placeOrder.order.id
      const { data: order } = await Order.get({ orderId }).go()
      assert.deepEqual([order.customerId, order.total], ['cust_01', Number(placeOrder.order.total.amount)])
      const { data: items } = await OrderItem.query.primary({ orderId }).go()
      assert.deepEqual(
        items.map((item) => [item.productId, item.qty]),
        [['prod_100', 2]],
      )
      const { data: copies } = await OrderOfCustomer.query.primary({ customerId: 'cust_01' }).go({ order: 'desc', pages: 'all' })
      const { customer } = await ordergraph.send(`{ customer(id: "cust_01") { orders(first: 100) { nodes { id } } } }`)
      assert.deepEqual(ids(copies), ids(customer.orders.nodes))
      assert.ok(ids(copies).includes(orderId))
      await assertStatus(orderId, 'cust_01', 'pending')
      await mutate('confirmOrder', `{ orderId: "${orderId}" }`)
      await assertStatus(orderId, 'cust_01', 'confirmed')
      await mutate('cancelOrder', `{ orderId: "${orderId}" }`)
      await assertStatus(orderId, 'cust_01', 'cancelled')
    })

    const orderId = '01HVZZ4Q3R0000000000000001'

    test('Ordergraph reads what ElectroDB writes', async () => {
      const createdAt = '2024-04-17T10:02:52.920Z'
      const order = { orderId, customerId: 'bo', status: 'pending', total: 259.98, createdAt, giftMessage: 'Enjoy!' }
      await Customer.create({ customerId: 'bo', name: 'Bo Li', email: 'bo@example.com', createdAt }).go()
      const { canceled } = await shop.transaction
        .write(({ Order, OrderItem, OrderOfCustomer }) => [
          Order.create(order).commit(),
          OrderOfCustomer.create(order).commit(),
          OrderItem.create({ orderId, productId: 'prod_100', name: 'Gift', qty: 2, price: 129.99 }).commit(),
        ])
        .go()
      assert.equal(canceled, false)
      const { customer } = await ordergraph.send(`{ customer(id: "bo") { name orders(first: 10) { nodes { id total { amount } items { nodes { productId name quantity unitPrice { amount } } } } } } }`)
      assert.deepEqual(customer, {
        name: 'Bo Li',
        orders: { nodes: [{ id: orderId, total: { amount: '259.98' }, items: { nodes: [{ productId: 'prod_100', name: 'Gift', quantity: 2, unitPrice: { amount: '129.99' } }] } }] },
      })
      await assertStatus(orderId, 'bo', 'pending')
    })

    test('each moves the order of the other', async () => {
      const { canceled } = await shop.transaction
        .write(({ Order, OrderOfCustomer }) => [Order.patch({ orderId }).set({ status: 'confirmed' }).commit(), OrderOfCustomer.patch({ customerId: 'bo', orderId }).set({ status: 'confirmed' }).commit()])
        .go()
      assert.equal(canceled, false)
      await assertStatus(orderId, 'bo', 'confirmed')
      await mutate('shipOrder', `{ orderId: "${orderId}", warehouseId: "wh_sea", withoutAddress: true }`)
      await assertStatus(orderId, 'bo', 'shipped')
      await mutate('deliverOrder', `{ orderId: "${orderId}" }`)
      await assertStatus(orderId, 'bo', 'delivered')
      assert.equal((await Order.get({ orderId }).go()).data.giftMessage, 'Enjoy!')
      assert.equal((await OrderOfCustomer.get({ customerId: 'bo', orderId }).go()).data.giftMessage, 'Enjoy!')
    })

    test('a repair adds what ElectroDB does not write, and ElectroDB reads every record as before', async () => {
      const repaired = ordergraph.run('check', '-repair')
      assert.equal(repaired.status, 0, repaired.output)
      const checked = ordergraph.run('check')
      assert.match(checked.output, /\nclean\n$/)
      const { Items: records } = await client.send(new ScanCommand({ TableName: ordergraph.table, ConsistentRead: true }))
      const names = {}
      for (const { pk, sk, __edb_e__: entity, __edb_v__: version } of records) {
        assert.ok(entity && version, `${pk.S} ${sk.S} has a name and a version`)
        names[entity.S] = (names[entity.S] ?? 0) + 1
      }
      for (const entity of [Customer, Order, OrderItem, OrderOfCustomer]) {
        const { data } = await entity.scan.go({ pages: 'all' })
        assert.ok(data.length > 0)
        assert.equal(data.length, names[entity.getName()])
      }
      // The customer that ElectroDB wrote is in Ordergraph's lists now.
      const { customers } = await ordergraph.send(`{ customers(namePrefix: "Bo Li") { nodes { id orderCount } } }`)
      assert.deepEqual(customers.nodes, [{ id: 'bo', orderCount: 1 }])
    })

    test('the commands name keys that ElectroDB writes in lower case', async () => {
      assert.match(ordergraph.run('table', 'describe').output, /fits {5}yes/)
      await lowerCaseCustomer(client, ordergraph.table).create({ customerId: 'cara', name: 'Cara' }).go()
      const described = ordergraph.run('table', 'describe')
      assert.equal(described.status, 1)
      assert.match(described.output, /keys {5}customer#cara #metadata: .* casing: "none".*\nfits {5}no/)
      const checked = ordergraph.run('check')
      assert.equal(checked.status, 1)
      assert.match(checked.output, /key-case {2}customer#cara #metadata: /)
    })
  })
}
