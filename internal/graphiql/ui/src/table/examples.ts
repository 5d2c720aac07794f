/** Operations to try. */
export const examples = [
  {
    title: 'Pending orders and their customers',
    query: `{
  ordersByStatus(status: PENDING) {
    nodes { id customer { name } }
  }
}`,
    variables: '',
  },
  {
    title: 'A customer and her newest orders',
    query: `query Orders($id: ID!) {
  customer(id: $id) {
    name
    orders(first: 10) { nodes { id status } }
  }
}`,
    variables: '{"id": "cust_01"}',
  },
  {
    title: 'An order, its timeline and its products',
    query: `query Order($id: ID!) {
  order(id: $id) {
    status
    timeline { nodes { type at } }
    items { nodes { quantity product { name available } } }
  }
}`,
    variables: '{"id": "01HVMK3P2Q0000000000000001"}',
  },
  {
    title: "An account rep's customers and orders",
    query: `{
  employee(id: "rep_001") {
    name
    customers { nodes { name } }
    orders { nodes { id status } }
  }
}`,
    variables: '',
  },
  {
    title: 'Place an order (writes)',
    query: `mutation Place($key: String!) {
  placeOrder(input: {
    customerId: "cust_01"
    items: [{ sku: "prod_100", quantity: 1 }]
    idempotencyKey: $key
  }) {
    order { id status }
    userErrors { message }
  }
}`,
    variables: '{"key": "my-first-order"}',
  },
]

/** A model that is not written yet. */
export const exampleExtension = `enum Channel { WEB APP STORE }

extend type Order {
  channel: Channel! @field(default: "WEB") @list(query: "ordersByChannel")
}
`
