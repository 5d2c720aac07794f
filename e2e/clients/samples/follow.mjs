import { createClient } from 'graphql-ws'

/**
 * Calls seen with each update of an order until seen returns false. It reconnects when the connection breaks, and resumes after
 * the last update. Errors: those of the subscription, if another attempt cannot succeed.
 */
export async function follow({ query, id, after, seen, keepAlive = 10_000, patience = 5_000, ...options }) {
  let silence
  const client = createClient({
    ...options, // url and connectionParams; webSocketImpl in Node
    keepAlive, // the interval of pings
    connectionAckWaitTimeout: patience,
    retryAttempts: 0, // its own retries repeat the first after
    on: {
      ping(received) {
        if (!received) silence = setTimeout(() => client.terminate(), patience) // the server is frozen or gone
      },
      pong: () => clearTimeout(silence),
      closed: () => clearTimeout(silence),
    },
  })
  for (;;) {
    try {
      for await (const { data } of client.iterate({ query, variables: { id, after } })) {
        if (!data?.orderUpdated) continue
        after = data.orderUpdated.id ?? after
        if (seen(data.orderUpdated) === false) return
      }
    } catch (reason) {
      // The errors of the subscription, or the close event of the socket.
      if (['NOT_FOUND', 'BAD_USER_INPUT', 'FORBIDDEN'].includes(reason[0]?.extensions?.code)) throw reason
    }
    await new Promise((resolve) => setTimeout(resolve, 1000))
  }
}
