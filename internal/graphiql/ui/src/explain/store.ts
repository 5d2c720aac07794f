import { readExplain, type Explain } from './model'

/** What is known about the last operation that ran. */
export type LastRun =
  | { outcome: 'none' }
  | { outcome: 'explained'; operation: string | null; explain: Explain }
  | { outcome: 'unexplained'; operation: string | null; asked: boolean }
  | { outcome: 'failed'; operation: string | null }

export interface ExplainState {
  /** Whether operations ask the server to explain itself. */
  enabled: boolean
  last: LastRun
}

interface Response {
  operation: string | null
  asked: boolean
  extensions: unknown
}

/**
 * Carries explains from the fetcher to the panel. It lives outside React
 * because the fetcher does, and because the panel is unmounted while closed and
 * must still know the last run when it opens.
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
   * Takes an explain whenever there is one, asked for or not: the header can
   * also be set by hand in GraphiQL's headers editor.
   */
  responded({ operation, asked, extensions }: Response): void {
    const explain = readExplain(extensions)
    this.#update({
      last: explain
        ? { outcome: 'explained', operation, explain }
        : { outcome: 'unexplained', operation, asked },
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
