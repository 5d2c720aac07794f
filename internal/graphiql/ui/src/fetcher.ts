import type { Fetcher, FetcherOpts, FetcherParams, Observable } from '@graphiql/toolkit'
import { getOperationAST, OperationTypeNode, parse, type ExecutionResult } from 'graphql'

import { authorizationOf, hasHeader, type AccessStore } from './access'
import type { ExplainStore } from './explain/store'
import { runSubscription } from './subscription'

/** The request header that asks the server for `extensions.explain`. */
const EXPLAIN_HEADER = 'X-Ordergraph-Explain'

/**
 * The function that sends GraphiQL's operations. It also passes every response to
 * the explain store. GraphiQL gets the response without the explain output, unless
 * the user requested it with a header of their own.
 */
export function createFetcher(
  endpoint: URL,
  explain: ExplainStore,
  access: AccessStore,
): Fetcher {
  return (params, options) => {
    // GraphiQL's own schema query is not explained, and does not count as the last run.
    if (params.operationName === 'IntrospectionQuery') {
      return introspect(endpoint, params, options, access)
    }
    const requested = explain.snapshot().enabled
    const extra: Record<string, string> = requested ? { [EXPLAIN_HEADER]: 'true' } : {}
    const hide = requested && !hasHeader(options?.headers, EXPLAIN_HEADER)
    const operation = params.operationName ?? null
    if (isSubscription(params)) {
      return observable((observer) =>
        runSubscription(endpoint, params, options, extra, {
          next: (result) => {
            explain.responded({ operation, requested, extensions: result.extensions })
            observer.next(hide ? withoutExplain(result) : result)
          },
          error: (reason) => {
            observer.error(reason)
          },
          complete: () => {
            observer.complete()
          },
        }),
      )
    }
    return observe(async (signal) => {
      try {
        const result = await post(endpoint, params, options, extra, signal)
        explain.responded({ operation, requested, extensions: result.extensions })
        return hide ? withoutExplain(result) : result
      } catch (error) {
        if (!signal.aborted) {
          explain.failed(operation)
        }
        throw error
      }
    })
  }
}

/** The result without `extensions.explain`, which the Explain panel shows. */
function withoutExplain(result: ExecutionResult): ExecutionResult {
  const { extensions, ...rest } = result
  const others = Object.entries(extensions ?? {}).filter(([name]) => name !== 'explain')
  return others.length > 0 ? { ...rest, extensions: Object.fromEntries(others) } : rest
}

/**
 * Sends the schema query and stores whether the server refused it. A refusal is
 * thrown, because GraphiQL would otherwise retry without the subscriptions.
 */
async function introspect(
  endpoint: URL,
  params: FetcherParams,
  options: FetcherOpts | undefined,
  access: AccessStore,
): Promise<ExecutionResult> {
  const authorization = authorizationOf(options?.headers)
  const result = await post(endpoint, params, options, {})
  const refusal = result.data ? null : result.errors?.[0]
  const code = refusal?.extensions['code']
  access.update({ authorization, refusal: refusal && typeof code === 'string' ? code : null })
  if (refusal) {
    throw new Error(`The server refused the schema query: ${refusal.message}`)
  }
  return result
}

function isSubscription(params: FetcherParams): boolean {
  try {
    // GraphiQL's own parsed document lags behind what is typed.
    const operation = getOperationAST(parse(params.query), params.operationName)
    return operation?.operation === OperationTypeNode.SUBSCRIPTION
  } catch {
    return false // the server reports the syntax error
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
      `${endpoint.pathname} returned ${response.status} ${response.statusText} with a body that is not JSON`,
    )
  }
}

export interface Observer {
  next: (value: ExecutionResult) => void
  error: (reason: unknown) => void
  complete: () => void
}

/**
 * One request as an observable. A promise would suffice for the result, but only an
 * observable lets GraphiQL abort the request when the user stops it or leaves the
 * tab.
 */
function observe(run: (signal: AbortSignal) => Promise<ExecutionResult>) {
  return observable((observer) => {
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
    return () => {
      controller.abort()
    }
  })
}

/** An observable that calls start with each observer. Unsubscribing calls the function that start returned. */
function observable(start: (observer: Observer) => () => void): Observable<ExecutionResult> {
  const subscribe = (observer: Observer) => ({ unsubscribe: start(observer) })
  // The type also has callbacks instead of an observer, which GraphiQL never uses.
  return { subscribe: subscribe as Observable<ExecutionResult>['subscribe'] }
}
