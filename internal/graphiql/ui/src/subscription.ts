import type { FetcherOpts, FetcherParams } from '@graphiql/toolkit'
import type { ExecutionResult } from 'graphql'
import { createClient } from 'graphql-ws'

import { authorizationOf } from './access'
import type { Observer } from './fetcher'

/** Explanations of close codes for the user. */
const REASONS: Record<number, string> = {
  1006: 'the server cannot be reached, or the connection was lost',
  1012: 'the server is restarting: run the subscription again',
  4401: 'the server requires a token: put {"Authorization": "Bearer ..."} into Headers',
  4403: 'the token is missing, invalid or expired: put {"Authorization": "Bearer ..."} into Headers',
}

/**
 * Runs a subscription over WebSocket (graphql-transport-ws). Each subscription has
 * its own connection, which uses the current headers and is closed when the
 * subscription is stopped or ends. A lost connection is not opened again, because
 * the user would not notice the missing updates.
 */
export function runSubscription(
  endpoint: URL,
  params: FetcherParams,
  options: FetcherOpts | undefined,
  extra: Record<string, string>,
  observer: Observer,
): () => void {
  const url = new URL(endpoint)
  url.protocol = endpoint.protocol === 'https:' ? 'wss:' : 'ws:'
  const authorization = authorizationOf(options?.headers)
  const client = createClient({
    url: url.href,
    // Browsers cannot send a page's headers with a WebSocket.
    connectionParams: { ...extra, ...(authorization && { Authorization: authorization }) },
    retryAttempts: 0,
    // Errors go only to the observer.
    onNonLazyError: () => undefined,
  })
  let stopped = false
  const stop = () => {
    stopped = true
    void client.dispose()
  }
  client.subscribe(
    {
      query: params.query,
      operationName: params.operationName ?? null,
      variables: params.variables as Record<string, unknown> | null,
    },
    {
      next: (result) => {
        if (!stopped) {
          observer.next(result as ExecutionResult)
        }
      },
      error: (reason) => {
        if (!stopped) {
          stop()
          observer.error(readable(reason))
        }
      },
      complete: () => {
        if (!stopped) {
          stop()
          observer.complete()
        }
      },
    },
  )
  return stop
}

/** Returns GraphQL errors unchanged, and the code and reason of a closed connection. */
function readable(reason: unknown): unknown {
  if (reason instanceof CloseEvent) {
    const why = [reason.reason, REASONS[reason.code]].filter(Boolean).join('; ')
    return { message: `The connection was closed with code ${reason.code}${why && `: ${why}`}` }
  }
  if (reason instanceof Event) {
    return { message: 'The WebSocket connection failed' }
  }
  return reason
}
