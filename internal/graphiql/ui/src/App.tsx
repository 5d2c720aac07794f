// Must stay the first import: Monaco asks for its workers while it loads.
import 'graphiql/setup-workers/vite'

import '@graphiql/react/style.css'
import '@graphiql/plugin-doc-explorer/style.css'
import '@graphiql/plugin-history/style.css'
import 'graphiql/graphiql.css'
import './graphiql.css'

import { HISTORY_PLUGIN } from '@graphiql/plugin-history'
import { GraphiQL } from 'graphiql'
import { useState } from 'react'

import { AccessStore } from './access'
import { AccessNotice } from './AccessNotice'
import { exampleQueries } from './examples'
import { createExplainPlugin } from './explain/plugin'
import type { ExplainStore } from './explain/store'
import { createFetcher } from './fetcher'
import { storageWithoutHeaders } from './storage'

const exampleTabs = exampleQueries.map((query) => ({ query }))

export function App({ endpoint, explain }: { endpoint: URL; explain: ExplainStore }) {
  // GraphiQL introspects again whenever it is given a new fetcher, and resets
  // its panels for a new plugin list: both are made once.
  const [wiring] = useState(() => {
    const access = new AccessStore()
    return {
      access,
      fetcher: createFetcher(endpoint, explain, access),
      storage: storageWithoutHeaders(localStorage),
      plugins: [HISTORY_PLUGIN, createExplainPlugin(explain)],
    }
  })
  return (
    <GraphiQL
      fetcher={wiring.fetcher}
      plugins={wiring.plugins}
      // Used only while local storage holds no tabs of the user's own.
      defaultTabs={exampleTabs}
      defaultQuery=""
      schemaDescription
      // Headers can carry credentials; they live as long as the page.
      isHeadersEditorEnabled
      shouldPersistHeaders={false}
      storage={wiring.storage}
    >
      <GraphiQL.Logo>
        <></>
      </GraphiQL.Logo>
      <GraphiQL.Footer>
        <AccessNotice store={wiring.access} />
      </GraphiQL.Footer>
    </GraphiQL>
  )
}
