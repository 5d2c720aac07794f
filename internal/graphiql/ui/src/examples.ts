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
  `# Pending orders.
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
query OrderDetails {
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
  `# An account rep's customers and orders.
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
  `# Places an order. Run it again: the same key returns the same order.
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
  `# Changes of orders. Run it, then place an order in another window.
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
