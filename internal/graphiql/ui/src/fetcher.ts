import type { Fetcher, FetcherOpts, FetcherParams, Observable } from '@graphiql/toolkit'
import { getOperationAST, OperationTypeNode, parse, type ExecutionResult } from 'graphql'

import { authorizationOf, type AccessStore } from './access'
import type { ExplainStore } from './explain/store'
import { runSubscription } from './subscription'

/** The request header that asks the server for `extensions.explain`. */
const EXPLAIN_HEADER = 'X-Ordergraph-Explain'

/**
 * The function GraphiQL sends operations with. It also hands every response to
 * the explain store; the response itself goes to GraphiQL untouched.
 */
export function createFetcher(
  endpoint: URL,
  explain: ExplainStore,
  access: AccessStore,
): Fetcher {
  return (params, options) => {
    // GraphiQL's own schema query is neither explained nor anybody's last run.
    if (params.operationName === 'IntrospectionQuery') {
      return introspect(endpoint, params, options, access)
    }
    const asked = explain.snapshot().enabled
    const extra: Record<string, string> = asked ? { [EXPLAIN_HEADER]: 'true' } : {}
    const operation = params.operationName ?? null
    if (isSubscription(params)) {
      return observable((observer) =>
        runSubscription(endpoint, params, options, extra, {
          next: (result) => {
            explain.responded({ operation, asked, extensions: result.extensions })
            observer.next(result)
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

/**
 * Asks for the schema, and notes whether the server told it. A refusal is
 * thrown, because GraphiQL would ask again without the subscriptions.
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
  access.asked({ authorization, refusal: refusal && typeof code === 'string' ? code : null })
  if (refusal) {
    throw new Error(`The server does not tell its schema: ${refusal.message}`)
  }
  return result
}

function isSubscription(params: FetcherParams): boolean {
  try {
    // GraphiQL's own parsed document lags behind what is typed.
    const operation = getOperationAST(parse(params.query), params.operationName)
    return operation?.operation === OperationTypeNode.SUBSCRIPTION
  } catch {
    return false // the server says what is wrong with it
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

export interface Observer {
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

/** An observable of what start tells its observer, until what it returns is called. */
function observable(start: (observer: Observer) => () => void): Observable<ExecutionResult> {
  const subscribe = (observer: Observer) => ({ unsubscribe: start(observer) })
  // The type also has callbacks instead of an observer, which GraphiQL never uses.
  return { subscribe: subscribe as Observable<ExecutionResult>['subscribe'] }
}
