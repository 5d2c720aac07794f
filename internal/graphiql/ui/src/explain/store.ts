import { readExplain, type Explain } from './model'

/** The result of the last operation. */
export type LastRun =
  | { outcome: 'none' }
  | { outcome: 'explained'; operation: string | null; explain: Explain }
  | { outcome: 'unexplained'; operation: string | null; requested: boolean }
  | { outcome: 'failed'; operation: string | null }

export interface ExplainState {
  /** Whether operations request explain output. */
  enabled: boolean
  last: LastRun
}

interface Response {
  operation: string | null
  requested: boolean
  extensions: unknown
}

/**
 * Passes explain output from the fetcher to the panel. It lives outside React,
 * because the fetcher does, and because the panel is unmounted while it is closed
 * and must show the last run when it opens.
 */
export class ExplainStore {
  #state: ExplainState = { enabled: true, last: { outcome: 'none' } }
  readonly #listeners = new Set<() => void>()

  readonly snapshot = (): ExplainState => this.#state

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
    }
  }

  setEnabled(enabled: boolean): void {
    this.#update({ enabled })
  }

  /**
   * Stores the explain output of a response. A response can have one even if the
   * panel is off, because the user can set the header in GraphiQL's headers editor.
   */
  responded({ operation, requested, extensions }: Response): void {
    const explain = readExplain(extensions)
    this.#update({
      last: explain
        ? { outcome: 'explained', operation, explain }
        : { outcome: 'unexplained', operation, requested },
    })
  }

  failed(operation: string | null): void {
    this.#update({ last: { outcome: 'failed', operation } })
  }

  #update(change: Partial<ExplainState>): void {
    this.#state = { ...this.#state, ...change }
    for (const listener of this.#listeners) {
      listener()
    }
  }
}
