import { lazy, Suspense, useState, useSyncExternalStore } from 'react'

import { ExplainStore } from './explain/store'
import { Tabs } from './Tabs'

const TABS = { graphiql: 'GraphiQL', table: 'Table' }
type Tab = keyof typeof TABS

// Each tab is loaded when it is first shown. GraphiQL is ten times larger than the rest.
const CONTENT = {
  graphiql: lazy(async () => ({ default: (await import('./App')).App })),
  table: lazy(async () => ({ default: (await import('./table/TableTab')).TableTab })),
}

/** The page with its two tabs. A tab that was shown once keeps its state while it is hidden. */
export function Page({ endpoint }: { endpoint: URL }) {
  const selected = useSyncExternalStore(subscribeToHash, tabOfHash)
  const [opened, setOpened] = useState<ReadonlySet<Tab>>(new Set([selected]))
  const [explain] = useState(() => new ExplainStore())
  if (!opened.has(selected)) {
    setOpened(new Set([...opened, selected]))
  }
  return (
    <>
      <header className="page-header">
        <h1>Ordergraph</h1>
        <Tabs
          label="Ordergraph"
          tabs={TABS}
          selected={selected}
          onSelect={(tab) => {
            location.hash = tab
          }}
        />
      </header>
      <main>
        {(Object.keys(TABS) as Tab[]).map((tab) => {
          const Content = CONTENT[tab]
          return (
            <div
              key={tab}
              role="tabpanel"
              id={`panel-${tab}`}
              aria-labelledby={`tab-${tab}`}
              hidden={tab !== selected}
            >
              {opened.has(tab) && (
                <Suspense fallback={<p className="page-loading">Loading…</p>}>
                  <Content endpoint={endpoint} explain={explain} />
                </Suspense>
              )}
            </div>
          )
        })}
      </main>
    </>
  )
}

function subscribeToHash(listener: () => void): () => void {
  window.addEventListener('hashchange', listener)
  return () => {
    window.removeEventListener('hashchange', listener)
  }
}

function tabOfHash(): Tab {
  return location.hash === '#table' ? 'table' : 'graphiql'
}
