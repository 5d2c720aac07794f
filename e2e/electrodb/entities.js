import { Entity, Service } from 'electrodb'

/** A key as Ordergraph writes it. */
const key = (field, template) => ({ field, composite: [...template.matchAll(/\$\{(\w+)\}/g)].map((match) => match[1]), template, casing: 'none' })

const keys = (pk, sk) => ({ pk: key('pk', pk), sk: key('sk', sk) })

const text = { type: 'string', required: true }

const order = {
  orderId: text,
  customerId: text,
  status: { type: ['pending', 'confirmed', 'shipped', 'delivered', 'cancelled'], required: true },
  total: { type: 'number', required: true },
  createdAt: text,
  giftMessage: { type: 'string' },
}

/** The entities of a shop that uses ElectroDB. In Ordergraph, OrderOfCustomer has the name customerOrder. */
export function entities(client, table) {
  const entity = (name, version, attributes, indexes) => new Entity({ model: { entity: name, version, service: 'ecommerce' }, attributes, indexes }, { client, table })
  return new Service({
    Customer: entity('customer', '1', { customerId: text, name: text, email: text, createdAt: text }, { primary: keys('CUSTOMER#${customerId}', '#METADATA') }),
    Order: entity('order', '2', order, {
      primary: keys('ORDER#${orderId}', '#METADATA'),
      byStatus: { index: 'GSI1', pk: key('gsi1pk', 'STATUS#${status}'), sk: key('gsi1sk', 'ORDER#${orderId}') },
    }),
    OrderOfCustomer: entity('orderOfCustomer', '1', order, { primary: keys('CUSTOMER#${customerId}', 'ORDER#${orderId}') }),
    OrderItem: entity(
      'orderItem',
      '1',
      { orderId: text, productId: text, name: text, qty: { type: 'number', required: true }, price: { type: 'number', required: true } },
      { primary: keys('ORDER#${orderId}', 'ITEM#${productId}') },
    ),
  })
}

/** The setting of Ordergraph that corresponds to the entities. */
export const identifiers = '1,order=2,customerOrder=orderOfCustomer:1'

/** A customer with the keys that ElectroDB writes by default. */
export function lowerCaseCustomer(client, table) {
  const lower = (field, template, composite) => ({ field, composite, template })
  return new Entity(
    {
      model: { entity: 'customer', version: '1', service: 'ecommerce' },
      attributes: { customerId: text, name: text },
      indexes: { primary: { pk: lower('pk', 'CUSTOMER#${customerId}', ['customerId']), sk: lower('sk', '#METADATA', []) } },
    },
    { client, table },
  )
}
