import type { OrderStatus, PriceFragment, RefusalFragment } from './gql/graphql.js'

/** What a page can do about a refusal. */
export type Reaction =
  | { kind: 'agreeAgain'; total: PriceFragment }
  | { kind: 'lowerQuantity'; sku: string; available: number }
  | { kind: 'readAgain'; message: string }
  | { kind: 'otherMove'; allowed: OrderStatus[] }
  | { kind: 'splitOrder'; limit: number }
  | { kind: 'waitForShipment'; message: string }
  | { kind: 'correctInput'; message: string; field: string }

/** Returns the reaction to a user error. A new type of user errors in the schema is a compile error here. */
export function reaction(refusal: RefusalFragment): Reaction {
  const { message } = refusal
  const field = refusal.field?.join('.') ?? ''
  switch (refusal.__typename) {
    case 'PriceChanged':
      return { kind: 'agreeAgain', total: refusal.currentTotal }
    case 'InsufficientStock':
      return { kind: 'lowerQuantity', sku: refusal.sku, available: refusal.available }
    case 'VersionConflict':
      return { kind: 'readAgain', message }
    case 'InvalidTransition':
      return { kind: 'otherMove', allowed: refusal.allowed }
    case 'TooManyLines':
      return { kind: 'splitOrder', limit: refusal.limit }
    case 'ReservationLimit':
      return { kind: 'waitForShipment', message }
    case 'AddressMissing':
    case 'AlreadyExists':
    case 'EmailTaken':
    case 'IdempotencyKeyReused':
    case 'InvalidInput':
    case 'NotFound':
      return { kind: 'correctInput', message, field }
    default:
      // A newer server has a type that this client was not compiled with.
      refusal satisfies never
      return { kind: 'correctInput', message, field }
  }
}
