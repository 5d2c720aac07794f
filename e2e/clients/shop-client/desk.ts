import { ClaimOrdersDocument, ConfirmOrderDocument, DashboardDocument, DeliverOrderDocument, EraseCustomerDocument, ShipOrderDocument, type ConfirmOrderMutation, type OrderStateFragment, type OrderStatus, type ShipOrderInput } from './gql/graphql.js'
import { reaction, type Reaction } from './refusals.js'
import { present, type Request } from './request.js'

/** The number of orders in each status. */
export async function dashboard(request: Request): Promise<Record<OrderStatus, number>> {
  const counts: Record<OrderStatus, number> = { PENDING: 0, CONFIRMED: 0, SHIPPED: 0, DELIVERED: 0, CANCELLED: 0 }
  for (const { status, count } of present((await request(DashboardDocument, {})).orderCounts)) {
    counts[status] = count
  }
  return counts
}

export type Move = { to: 'CONFIRMED' } | { to: 'SHIPPED'; parcel: Pick<ShipOrderInput, 'warehouseId' | 'carrier' | 'trackingNumber'> } | { to: 'DELIVERED' }
export type Moved = { kind: 'moved'; order: OrderStateFragment } | { kind: 'givenUp'; order: OrderStateFragment } | { kind: 'refused'; reactions: Reaction[] }

/**
 * Moves an order that an employee has read. If somebody has changed it since, the employee sees the order as it is now, and
 * decides whether to move it still.
 */
export async function moveOrder(request: Request, order: OrderStateFragment, move: Move, still: (now: OrderStateFragment) => Promise<boolean>): Promise<Moved> {
  for (;;) {
    const { order: now, userErrors } = present(await send(request, order, move))
    if (now && userErrors.length === 0) {
      return { kind: 'moved', order: now }
    }
    const reactions = userErrors.map(reaction)
    if (!now || !reactions.some(({ kind }) => kind === 'readAgain')) {
      return { kind: 'refused', reactions }
    }
    if (!(await still(now))) {
      return { kind: 'givenUp', order: now }
    }
    order = now
  }
}

/** In operations.graphql, all these mutations have the same alias, so their payloads have the same type. */
async function send(request: Request, order: OrderStateFragment, move: Move): Promise<ConfirmOrderMutation['move']> {
  const input = { orderId: order.id, expectedVersion: order.version, idempotencyKey: crypto.randomUUID() }
  switch (move.to) {
    case 'CONFIRMED':
      return (await request(ConfirmOrderDocument, { input })).move
    case 'SHIPPED':
      return (await request(ShipOrderDocument, { input: { ...input, ...move.parcel } })).move
    case 'DELIVERED':
      return (await request(DeliverOrderDocument, { input })).move
  }
}

/** Claims the orders of the guest with the customer's verified address, one after another, and returns their IDs. It can be called again after a failure. */
export async function claimOrders(request: Request, customerId: string): Promise<string[]> {
  const claimed: string[] = []
  for (;;) {
    const { order } = present((await request(ClaimOrdersDocument, { input: { customerId } })).claim)
    if (!order) {
      return claimed
    }
    claimed.push(order.id)
  }
}

/** Erases a customer, one order after another. It can be called again after a failure. */
export async function eraseCustomer(request: Request, customerId: string): Promise<Reaction[]> {
  for (;;) {
    const { deletedCustomer, userErrors } = present((await request(EraseCustomerDocument, { input: { customerId } })).erase)
    if (!deletedCustomer || deletedCustomer.erased) {
      return userErrors.map(reaction)
    }
  }
}
