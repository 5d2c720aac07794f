// Takes the pictures of the README, in docs/images: `npm run pictures`, with a server at BASE_URL.
import { mkdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

import { launchBrowser, newVisit, openEditor, openExplain, origin, run, setQuery } from './session.js'

const directory = fileURLToPath(new URL('../../docs/images/', import.meta.url))
const QUERY = `query PendingOrders {
  ordersByStatus(status: PENDING, first: 10) {
    nodes {
      id
      customer { name }
    }
  }
}
`

mkdirSync(directory, { recursive: true })
const browser = await launchBrowser()
try {
  const { page } = await newVisit(browser)
  await page.emulateMedia({ reducedMotion: 'reduce' })
  await page.setViewportSize({ width: 1120, height: 600 })
  await page.goto(`${origin}/#table`)
  await page.getByRole('button', { name: 'Run', exact: true }).click()
  await page.locator('.line-reads').waitFor()
  await page.locator('.steps > li').last().scrollIntoViewIfNeeded()
  await page.screenshot({ path: `${directory}table.png` })

  await page.setViewportSize({ width: 1280, height: 640 })
  await openEditor(page)
  await setQuery(page, QUERY, 'PendingOrders')
  const panel = await openExplain(page)
  await run(page)
  await panel.getByText('Round trip 2').waitFor()
  await page.screenshot({ path: `${directory}explain.png` })
} finally {
  await browser.close()
}
