// Must stay the first import: Monaco asks for its workers while it loads.
import 'graphiql/setup-workers/vite'

import '@graphiql/react/style.css'
import '@graphiql/plugin-doc-explorer/style.css'
import '@graphiql/plugin-history/style.css'
import 'graphiql/graphiql.css'
import './page.css'

import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'

import { App } from './App'
import { readEndpoint } from './endpoint'

const root = document.getElementById('root')
if (!root) {
  throw new Error('index.html has no element with id "root"')
}

createRoot(root).render(
  <StrictMode>
    <App endpoint={readEndpoint(document)} />
  </StrictMode>,
)
