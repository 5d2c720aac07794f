import type { TypedDocumentNode } from '@graphql-typed-document-node/core'
import { print, type GraphQLFormattedError } from 'graphql'

/** Sends an operation and returns its data. */
export type Request = <Data, Variables>(document: TypedDocumentNode<Data, Variables>, variables: Variables) => Promise<Data>

/** The top-level errors of a response. They do not include user errors, which are part of the data. */
export class RequestError extends Error {
  constructor(readonly errors: readonly GraphQLFormattedError[]) {
    super(errors.map(({ message }) => message).join('\n'))
  }

  /** The codes that docs/clients.md lists. */
  get codes(): unknown[] {
    return this.errors.map(({ extensions }) => extensions?.['code'])
  }
}

export const aSecond = () => new Promise<void>((resolve) => setTimeout(resolve, 1000))

/**
 * Returns what sends operations to an endpoint. Without an answer it sends them again: mutations carry an `idempotencyKey`, so they are
 * done once. It throws a RequestError, or the error of fetch.
 */
export function connect(endpoint: string, headers: Record<string, string> = {}, pause = aSecond): Request {
  return async (document, variables) => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await send(endpoint, headers, document, variables)
      } catch (error) {
        if (attempt === 3 || !passes(error)) throw error
        await pause()
      }
    }
  }
}

type Answer<Data> = { data: Data; errors?: never } | { errors: readonly GraphQLFormattedError[] }

async function send<Data, Variables>(endpoint: string, headers: Record<string, string>, document: TypedDocumentNode<Data, Variables>, variables: Variables): Promise<Data> {
  const response = await fetch(endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/graphql-response+json', ...headers },
    body: JSON.stringify({ query: print(document), variables }),
  })
  // The types are generated from the schema, so the data is not verified here.
  const answer = (await response.json()) as Answer<Data>
  if (answer.errors) {
    throw new RequestError(answer.errors)
  }
  return answer.data
}

const passing: unknown[] = ['UNAVAILABLE', 'TIMED_OUT', 'OVERLOADED', 'RATE_LIMITED']

/** Reports whether the same request can succeed later. A TypeError means that fetch received no response. */
function passes(error: unknown): boolean {
  return error instanceof RequestError ? error.codes.some((code) => passing.includes(code)) : error instanceof TypeError
}

/** The value of a field that is null if the record does not exist, or beside an error, which connect throws. */
export function present<Value>(value: Value | null | undefined): Value {
  if (value === null || value === undefined) {
    throw new Error('there is no such record')
  }
  return value
}
