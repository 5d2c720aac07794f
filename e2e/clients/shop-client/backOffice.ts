import {
  CanShipFromDocument, CancelItemsDocument, CreateFulfillmentDocument, OrderByTrackingNumberDocument, OrdersByTagDocument, TagOrderDocument, ReceiveReturnDocument, RecordPaymentDocument, RequestReturnDocument, ApproveReturnDocument, OrderDetailsDocument,
  type OrderDetailsQuery, type CreateFulfillmentInput, type FulfillmentLineInput, type RecordPaymentInput, type ReturnLineInput, type RestockedLineInput, type ReturnStateFragment,
} from './gql/graphql.js'
import { pages } from './paging.js'
import { reaction, type Reaction } from './refusals.js'
import { present, type Request } from './request.js'

export type OrderDetails = NonNullable<OrderDetailsQuery['order']>
export type Result<Value> = { kind: 'done'; value: Value } | { kind: 'refused'; reactions: Reaction[] }

/** What happened to an order after it was placed: its money, parcels and returns. */
export const orderDetails = async (request: Request, id: string): Promise<OrderDetails> => present((await request(OrderDetailsDocument, { id })).order)

/** The ID of the order in a parcel, or null. */
export const orderInParcel = async (request: Request, trackingNumber: string): Promise<string | null> =>
  (await request(OrderByTrackingNumberDocument, { trackingNumber })).orderByTrackingNumber?.id ?? null

/** Removes tags from an order, and then adds tags. */
export async function tag(request: Request, orderId: string, add: string[], remove: string[] = []): Promise<Result<string[]>> {
  const { order, userErrors } = present((await request(TagOrderDocument, { input: { orderId, add, remove } })).tagOrder)
  return userErrors.length === 0 && order ? done(order.tags) : refused(userErrors.map(reaction))
}

/** The IDs of all orders with a tag, the newest first. */
export async function taggedOrders(request: Request, tag: string): Promise<string[]> {
  const ids: string[] = []
  for await (const orders of pages(async (after) => (await request(OrdersByTagDocument, { tag, after })).ordersByTag)) {
    ids.push(...orders.map(({ id }) => id))
  }
  return ids
}

/** Records an event of a payment provider. Providers send their events more than once, so the reference is the key. */
export async function recordPayment(request: Request, input: RecordPaymentInput): Promise<Result<{ id: string }>> {
  const { payment, userErrors } = present((await request(RecordPaymentDocument, { input })).recordPayment)
  return payment ? done(payment) : refused(userErrors.map(reaction))
}

/** Ships pieces of an order. Without lines, the parcel contains everything that is open. */
export async function ship(request: Request, parcel: Omit<CreateFulfillmentInput, 'idempotencyKey'>): Promise<Result<{ id: string }>> {
  const input = { ...parcel, idempotencyKey: crypto.randomUUID() }
  const { fulfillment, userErrors } = present((await request(CreateFulfillmentDocument, { input })).createFulfillment)
  return fulfillment ? done(fulfillment) : refused(userErrors.map(reaction))
}

/** Those of the warehouses that have everything in stock that is open, so one parcel can contain it. If there are none, it takes several parcels. */
export async function warehousesFor(request: Request, id: string, warehouseIds: string[]): Promise<string[]> {
  const able = await Promise.all(warehouseIds.map(async (warehouseId) => present((await request(CanShipFromDocument, { id, warehouseId })).order).canShipFrom))
  return warehouseIds.filter((_, i) => able[i])
}

/** Cancels pieces that cannot be shipped. */
export async function cancelItems(request: Request, orderId: string, lines: FulfillmentLineInput[]): Promise<Result<{ id: string }>> {
  const input = { orderId, lines, idempotencyKey: crypto.randomUUID() }
  const { order, userErrors } = present((await request(CancelItemsDocument, { input })).cancelOrderItems)
  return userErrors.length === 0 && order ? done(order) : refused(userErrors.map(reaction))
}

/** The customer's part of a return. */
export async function sendBack(request: Request, orderId: string, lines: ReturnLineInput[]): Promise<Result<ReturnStateFragment>> {
  const input = { orderId, lines, idempotencyKey: crypto.randomUUID() }
  return returned(present((await request(RequestReturnDocument, { input })).step))
}

/** The shop's part of a return: it approves it, and receives it in a warehouse. Pieces that are not restocked are written off. */
export async function takeBack(request: Request, back: ReturnStateFragment, warehouseId: string, lines: RestockedLineInput[]): Promise<Result<ReturnStateFragment>> {
  const names = { orderId: back.orderId, returnId: back.id }
  const approved = returned(present((await request(ApproveReturnDocument, { input: { ...names, idempotencyKey: crypto.randomUUID() } })).step))
  if (approved.kind === 'refused') {
    return approved
  }
  return returned(present((await request(ReceiveReturnDocument, { input: { ...names, warehouseId, lines, idempotencyKey: crypto.randomUUID() } })).step))
}

type ReturnStep = { return: ReturnStateFragment | null; userErrors: Parameters<typeof reaction>[0][] }

function returned(step: ReturnStep): Result<ReturnStateFragment> {
  return step.return && step.userErrors.length === 0 ? done(step.return) : refused(step.userErrors.map(reaction))
}

const done = <Value>(value: Value): Result<Value> => ({ kind: 'done', value })
const refused = <Value>(reactions: Reaction[]): Result<Value> => ({ kind: 'refused', reactions })
