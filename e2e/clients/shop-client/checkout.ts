import { PlaceOrderDocument, QuoteDocument, type PlaceOrderInput, type PlaceOrderMutation, type QuoteQuery } from './gql/graphql.js'
import { reaction, type Reaction } from './refusals.js'
import { present, type Request } from './request.js'

export type Quote = NonNullable<QuoteQuery['quote']>
export type PlacedOrder = NonNullable<NonNullable<PlaceOrderMutation['placeOrder']>['order']>
export type Cart = Omit<PlaceOrderInput, 'expectedTotal' | 'idempotencyKey'>
export type Checkout = { kind: 'placed'; order: PlacedOrder } | { kind: 'abandoned' } | { kind: 'refused'; reactions: Reaction[] }

/**
 * Quotes a cart, to which a back office can add shipping, taxes and discounts, asks the customer, and places the order at the total that the customer agreed to. If a price changes in
 * between, the customer is asked again.
 */
export async function checkout(request: Request, cart: Cart, agree: (quote: Quote) => Promise<boolean>): Promise<Checkout> {
  const idempotencyKey = crypto.randomUUID() // a refusal is not remembered, so every attempt can use it
  for (;;) {
    const quote = present((await request(QuoteDocument, { items: cart.items, adjustments: cart.adjustments ?? null })).quote)
    if (quote.userErrors.length > 0) {
      return { kind: 'refused', reactions: quote.userErrors.map(reaction) }
    }
    if (!(await agree(quote))) {
      return { kind: 'abandoned' }
    }
    const { placeOrder } = await request(PlaceOrderDocument, { input: { ...cart, expectedTotal: present(quote.total), idempotencyKey } })
    const { order, userErrors } = present(placeOrder)
    if (order) {
      return { kind: 'placed', order }
    }
    const reactions = userErrors.map(reaction)
    if (!reactions.some(({ kind }) => kind === 'agreeAgain')) {
      return { kind: 'refused', reactions }
    }
  }
}
