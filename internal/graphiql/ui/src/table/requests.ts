import type { Table } from './model'

/** A mistake that the server reports. */
export interface Problem {
  message: string
  locations?: { line: number }[]
  extensions?: { code?: string }
}

/** The errors of a response. */
export class Refusal extends Error {
  constructor(readonly problems: Problem[]) {
    super(problems.map(({ message }) => message).join('\n'))
  }
}

export interface Result {
  data?: Record<string, unknown> | null
  errors?: Problem[]
  extensions?: unknown
}

/** Sends the requests of the Table tab. The token is never stored. */
export class Server {
  constructor(
    readonly endpoint: URL,
    readonly token: string,
  ) {}

  /** The declared table, or the table with a schema extension. */
  async table(extension?: string): Promise<Table> {
    const post = { method: 'POST', body: extension ?? null }
    const url = new URL('table', this.endpoint)
    return (await this.#send(url, extension === undefined ? {} : post, {
      'Content-Type': 'application/graphql',
    })) as Table
  }

  /** Runs an operation. Errors of single fields are in the result. */
  async run(query: string, variables: unknown, explain = false): Promise<Result> {
    const body = JSON.stringify({ query, variables })
    return (await this.#send(this.endpoint, { method: 'POST', body }, {
      'Content-Type': 'application/json',
      ...(explain && { 'X-Ordergraph-Explain': 'true' }),
    })) as Result
  }

  async #send(url: URL, init: RequestInit, headers: Record<string, string>): Promise<unknown> {
    if (this.token !== '') {
      headers['Authorization'] = `Bearer ${this.token}`
    }
    const response = await fetch(url, { ...init, headers })
    const text = await response.text()
    let body: Result
    try {
      body = JSON.parse(text) as Result
    } catch {
      throw new Refusal([
        { message: `${url.pathname} returned ${response.status} ${response.statusText}` },
      ])
    }
    if (body.errors && !body.data) {
      throw new Refusal(body.errors)
    }
    return body
  }
}

/** The mistakes behind a failed request. */
export function problemsOf(reason: unknown): Problem[] {
  return reason instanceof Refusal
    ? reason.problems
    : [{ message: `The server cannot be reached: ${String(reason)}` }]
}
