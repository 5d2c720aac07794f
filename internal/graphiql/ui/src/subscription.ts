import type { FetcherOpts, FetcherParams } from '@graphiql/toolkit'
import type { ExecutionResult } from 'graphql'
import { createClient } from 'graphql-ws'

import { authorizationOf } from './access'
import type { Observer } from './fetcher'

/** What closes a connection, in words for whoever typed the operation. */
const REASONS: Record<number, string> = {
  1006: 'the server cannot be reached, or has gone away',
  1012: 'the server is restarting: run the subscription again',
  4401: 'the server wants to know who asks: put {"Authorization": "Bearer ..."} into Headers',
  4403: 'there is no token that the server takes, or it has expired: put {"Authorization": "Bearer ..."} into Headers',
}

/**
 * Runs a subscription over WebSocket (graphql-transport-ws). Each has a
 * connection of its own, which is opened with the headers of that moment and
 * closed when the subscription is stopped or ends. A connection that breaks is
 * not opened again: updates would be missing, and nobody would know.
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
    // Browsers send no headers of a page's own with WebSocket.
    connectionParams: { ...extra, ...(authorization && { Authorization: authorization }) },
    retryAttempts: 0,
    // What the observer is not told of goes nowhere else.
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

/** GraphQL's errors as they are, and for a closed connection its code and reason. */
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
