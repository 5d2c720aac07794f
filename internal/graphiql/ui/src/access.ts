/** The result of the last schema query. */
export interface SchemaAccess {
  /** The Authorization header of the query, or an empty string. */
  authorization: string
  /** The error code of the server's refusal, or null if the server returned the schema. */
  refusal: string | null
}

/** Passes the result of the schema query from the fetcher to the notice. */
export class AccessStore {
  #state: SchemaAccess = { authorization: '', refusal: null }
  readonly #listeners = new Set<() => void>()

  readonly snapshot = (): SchemaAccess => this.#state

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
    }
  }

  update(state: SchemaAccess): void {
    this.#state = state
    for (const listener of this.#listeners) {
      listener()
    }
  }
}

/** The Authorization header, found regardless of case, or an empty string. */
export function authorizationOf(headers: Record<string, unknown> | null | undefined): string {
  for (const [name, value] of Object.entries(headers ?? {})) {
    if (name.toLowerCase() === 'authorization' && typeof value === 'string') {
      return value
    }
  }
  return ''
}

/** Reports whether the headers contain the name, regardless of case. */
export function hasHeader(headers: Record<string, unknown> | null | undefined, name: string): boolean {
  return Object.keys(headers ?? {}).some((other) => other.toLowerCase() === name.toLowerCase())
}
