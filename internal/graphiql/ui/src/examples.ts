/**
 * The tabs of a first visit. Operations are named because GraphiQL titles a tab
 * with its operation's name.
 */
export const exampleQueries = [
  `# A customer and her newest orders.
query AlicesOrders {
  customer(id: "cust_01") {
    name
    orders(first: 10) {
      nodes {
        id
        status
        total {
          amount
          currencyCode
        }
        items {
          nodes {
            name
            quantity
          }
        }
      }
    }
  }
}
`,
  `# Orders that wait to be handled.
query PendingOrders {
  ordersByStatus(status: PENDING, first: 10) {
    nodes {
      id
      placedAt
      customer {
        name
      }
      total {
        amount
        currencyCode
      }
    }
    pageInfo {
      hasNextPage
      endCursor
    }
  }
}
`,
  `# One order, its items and history.
query WholeOrder {
  order(id: "01HVMK3P2Q0000000000000001") {
    status
    items {
      nodes {
        name
        quantity
        unitPrice {
          amount
        }
      }
    }
    timeline {
      nodes {
        type
        at
      }
    }
  }
}
`,
  `# A product's stock by warehouse.
query Stock {
  product(sku: "prod_100") {
    name
    totalInventory
    available
    inventory {
      nodes {
        warehouse {
          name
        }
        quantity
      }
    }
  }
}
`,
  `# Whom an account rep looks after.
query AccountRep {
  employee(id: "rep_001") {
    name
    customers {
      nodes {
        name
      }
    }
    orders {
      nodes {
        id
        status
        total {
          amount
          currencyCode
        }
      }
    }
  }
}
`,
  `# An order. Run it again: with the same key there is still one order, and the same answer.
mutation PlaceOrder {
  placeOrder(
    input: {
      customerId: "cust_01"
      items: [{ sku: "prod_100", quantity: 1 }]
      idempotencyKey: "my-first-order"
    }
  ) {
    order {
      id
      status
      total {
        amount
        currencyCode
      }
      availableTransitions
      customer {
        orderCount
      }
      timeline {
        nodes {
          type
          actor
          at
        }
      }
    }
    userErrors {
      code
      message
      field
    }
  }
}
`,
  `# Orders as they change. Run it, and place an order from another window.
subscription OrderChanges {
  orderStatusChanged {
    id
    event {
      type
      to
      at
    }
    order {
      id
      status
      customer {
        name
      }
      total {
        amount
        currencyCode
      }
    }
  }
}
`,
]
