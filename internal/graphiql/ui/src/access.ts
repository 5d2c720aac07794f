/** How it went when the page last asked for the schema. */
export interface SchemaAccess {
  /** The Authorization header that it was asked with; empty for none. */
  authorization: string
  /** The code of the server's refusal, null where it told the schema. */
  refusal: string | null
}

/** Carries that from the fetcher to the notice below the result. */
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

  asked(state: SchemaAccess): void {
    this.#state = state
    for (const listener of this.#listeners) {
      listener()
    }
  }
}

/** The Authorization header among headers, whatever its case; empty where there is none. */
export function authorizationOf(headers: Record<string, unknown> | null | undefined): string {
  for (const [name, value] of Object.entries(headers ?? {})) {
    if (name.toLowerCase() === 'authorization' && typeof value === 'string') {
      return value
    }
  }
  return ''
}
