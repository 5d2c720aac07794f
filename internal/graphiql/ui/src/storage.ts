/** The part of the Storage interface that GraphiQL uses. */
interface Store {
  getItem: (key: string) => string | null
  setItem: (key: string, value: string) => void
  removeItem: (key: string) => void
  readonly length: number
  clear: () => void
}

const NAMESPACE = 'graphiql:'
const HEADERS = `${NAMESPACE}headers`
const TABS = `${NAMESPACE}tabState`
/** The lists that hold operations with their headers. */
const LISTS = [TABS, `${NAMESPACE}queries`, `${NAMESPACE}favorites`]

/**
 * Local storage without headers, which can carry tokens. GraphiQL's
 * `shouldPersistHeaders` keeps them out of the tabs only: its history stores
 * the headers of every operation that ran. Headers that an earlier version
 * of the page has stored are removed at once.
 */
export function storageWithoutHeaders(local: Storage): Store {
  local.removeItem(HEADERS)
  for (const key of LISTS) {
    const stored = local.getItem(key)
    if (stored !== null) {
      local.setItem(key, withoutHeaders(key, stored))
    }
  }
  const own = () => Object.keys(local).filter((key) => key.startsWith(NAMESPACE))
  return {
    getItem: (key) => local.getItem(key),
    setItem: (key, value) => {
      if (key !== HEADERS) {
        local.setItem(key, LISTS.includes(key) ? withoutHeaders(key, value) : value)
      }
    },
    removeItem: (key) => {
      local.removeItem(key)
    },
    get length() {
      return own().length
    },
    clear: () => {
      for (const key of own()) {
        local.removeItem(key)
      }
    },
  }
}

function withoutHeaders(key: string, text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), (name, value: unknown) =>
      // GraphiQL rejects a tab without this member.
      name === 'headers' ? (key === TABS ? null : undefined) : value,
    )
  } catch {
    return '' // headers cannot be removed from malformed text
  }
}
