import type { Fetcher, FetcherOpts, FetcherParams } from '@graphiql/toolkit'
import type { ExecutionResult } from 'graphql'

import type { ExplainStore } from './explain/store'

/** The request header that asks the server for `extensions.explain`. */
const EXPLAIN_HEADER = 'X-Ordergraph-Explain'

/**
 * The function GraphiQL sends operations with. It also hands every response to
 * the explain store; the response itself goes to GraphiQL untouched.
 */
export function createFetcher(endpoint: URL, explain: ExplainStore): Fetcher {
  return (params, options) => {
    // GraphiQL's own schema query is neither explained nor anybody's last run.
    if (params.operationName === 'IntrospectionQuery') {
      return post(endpoint, params, options, {})
    }
    return observe(async (signal) => {
      const asked = explain.snapshot().enabled
      const extra = asked ? { [EXPLAIN_HEADER]: 'true' } : {}
      const operation = params.operationName ?? null
      try {
        const result = await post(endpoint, params, options, extra, signal)
        explain.responded({ operation, asked, extensions: result.extensions })
        return result
      } catch (error) {
        if (!signal.aborted) {
          explain.failed(operation)
        }
        throw error
      }
    })
  }
}

async function post(
  endpoint: URL,
  params: FetcherParams,
  options: FetcherOpts | undefined,
  extra: Record<string, string>,
  signal?: AbortSignal,
): Promise<ExecutionResult> {
  const headers = new Headers({
    Accept: 'application/graphql-response+json, application/json;q=0.9',
    'Content-Type': 'application/json',
    ...extra,
  })
  // Set last, so that what the user types in the headers editor wins.
  for (const [name, value] of Object.entries(options?.headers ?? {})) {
    headers.set(name, String(value))
  }
  const response = await fetch(endpoint, {
    method: 'POST',
    headers,
    body: JSON.stringify(params),
    ...(signal && { signal }),
  })
  const body = await response.text()
  try {
    // Also for 4xx and 5xx: a GraphQL error document is the best description.
    return JSON.parse(body) as ExecutionResult
  } catch {
    throw new Error(
      `${endpoint.pathname} answered ${response.status} ${response.statusText} with a body that is not JSON`,
    )
  }
}

interface Observer {
  next: (value: ExecutionResult) => void
  error: (reason: unknown) => void
  complete: () => void
}

/**
 * One request as the observable GraphiQL understands. A promise would do for
 * the result, but only an observable lets GraphiQL's stop button (and leaving
 * the tab) really abort the request.
 */
function observe(run: (signal: AbortSignal) => Promise<ExecutionResult>) {
  return {
    subscribe(observer: Observer) {
      const controller = new AbortController()
      run(controller.signal).then(
        (result) => {
          observer.next(result)
          observer.complete()
        },
        (reason: unknown) => {
          if (!controller.signal.aborted) {
            observer.error(reason)
          }
        },
      )
      return {
        unsubscribe: () => {
          controller.abort()
        },
      }
    },
  }
}
