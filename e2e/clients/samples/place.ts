import { graphql } from './gql/index.js'
import type { PlaceMutation } from './gql/graphql.js'

export const place = graphql(`
  mutation Place($input: PlaceOrderInput!) {
    placeOrder(input: $input) {
      order { id version }
      userErrors { __typename code message field ... on InsufficientStock { sku available } }
    }
  }
`)

type UserError = NonNullable<PlaceMutation['placeOrder']>['userErrors'][number]

export function explain(error: UserError): string {
  switch (error.__typename) {
    case 'InsufficientStock':
      return `Only ${error.available} of ${error.sku} are left.`
    case 'AddressMissing':
    case 'AlreadyExists':
    case 'EmailTaken':
    case 'IdempotencyKeyReused':
    case 'InvalidInput':
    case 'InvalidTransition':
    case 'NotFound':
    case 'PriceChanged':
    case 'ReservationLimit':
    case 'TooManyLines':
    case 'VersionConflict':
      return error.message
    default:
      return (error satisfies never as UserError).message
  }
}
