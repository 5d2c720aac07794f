import './page.css'

import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'

import { readEndpoint } from './endpoint'
import { Page } from './Page'

const root = document.getElementById('root')
if (!root) {
  throw new Error('index.html has no element with id "root"')
}

createRoot(root).render(
  <StrictMode>
    <Page endpoint={readEndpoint(document)} />
  </StrictMode>,
)
