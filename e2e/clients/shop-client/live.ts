import { print, type GraphQLFormattedError } from 'graphql'
import { createClient, type ClientOptions } from 'graphql-ws'
import { OrderUpdatesDocument, type OrderUpdatesSubscription } from './gql/graphql.js'
import { aSecond, RequestError } from './request.js'

export type Update = OrderUpdatesSubscription['customerOrders']

/** The errors after which it makes no sense to subscribe again. */
const final: unknown[] = ['NOT_FOUND', 'BAD_USER_INPUT', 'FORBIDDEN']

/**
 * Follows a customer's orders from an event on, whatever happens to the connection: it connects again after a pause, and
 * goes on behind the last update. It throws a RequestError when the server refuses for good.
 */
export async function* follow(options: ClientOptions, customer: string, after: string | null, pause = aSecond): AsyncGenerator<Update> {
  let silence: ReturnType<typeof setTimeout> | undefined
  const client = createClient({
    keepAlive: 10_000,
    ...options,
    retryAttempts: 0, // it would send the first after again
    on: {
      ping(received) {
        if (!received) silence = setTimeout(() => client.terminate(), 5_000) // the server is frozen or gone
      },
      pong: () => clearTimeout(silence),
      closed: () => clearTimeout(silence),
    },
  })
  try {
    for (;;) {
      try {
        for await (const { data } of client.iterate<OrderUpdatesSubscription>({ query: print(OrderUpdatesDocument), variables: { customer, after } })) {
          if (!data) continue // this update had an error; the subscription goes on
          after = data.customerOrders.id ?? after
          yield data.customerOrders
        }
      } catch (reason) {
        // The errors of the subscription, or the event of a socket that was closed.
        if (isErrors(reason) && reason.some(({ extensions }) => final.includes(extensions?.['code']))) throw new RequestError(reason)
      }
      await pause()
    }
  } finally {
    await client.dispose()
  }
}

function isErrors(reason: unknown): reason is readonly GraphQLFormattedError[] {
  return Array.isArray(reason)
}
