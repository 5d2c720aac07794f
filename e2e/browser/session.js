import { chromium } from 'playwright-core'

const address = process.env.BASE_URL
if (!address) {
  throw new Error('set BASE_URL to the address of a running server, such as http://127.0.0.1:8080')
}

/** The origin under test. */
export const origin = new URL(address).origin

export function launchBrowser() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: [
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-gpu',
      '--disable-quic',
      '--disable-sync',
      '--no-first-run',
      '--no-sandbox',
      // No other host exists, so a page that needs one cannot pass by luck.
      `--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE ${new URL(address).hostname}`,
    ],
  })
}

/**
 * A visit by somebody new: storage is empty, and everything that the page asks
 * of the network or complains about is written down.
 */
export async function newVisit(browser) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } })
  const page = await context.newPage()
  const visit = { page, requests: [], foreign: [], complaints: [] }

  // On the context, because requests of workers do not belong to the page.
  context.on('request', (request) => {
    const url = new URL(request.url())
    if (url.protocol === 'data:' || url.protocol === 'blob:') {
      return
    }
    visit.requests.push(request)
    if (url.origin !== origin) {
      visit.foreign.push(url.href)
    }
  })
  context.on('response', (response) => {
    if (response.status() >= 400) {
      visit.complaints.push(`${response.status()} for ${response.url()}`)
    }
  })
  context.on('console', (message) => {
    if (message.type() === 'error') {
      visit.complaints.push(message.text())
    }
  })
  context.on('weberror', (error) => {
    visit.complaints.push(String(error.error()))
  })
  // The console reports violations too, but in words that change with the
  // browser's version.
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) => {
      console.error(`policy violation: ${event.effectiveDirective} ${event.blockedURI}`)
    })
  })
  return visit
}

/** Opens the query editor and waits until it can run a query. */
export async function openEditor(page) {
  await page.goto(`${origin}/`)
  await page.locator('.graphiql-query-editor .view-line').first().waitFor()
}

/** The requests to the GraphQL endpoint, with their parsed bodies. */
export function operations(visit) {
  return visit.requests
    .filter((request) => new URL(request.url()).pathname === '/graphql')
    .map((request) => ({ headers: request.headers(), body: request.postDataJSON() }))
}

/** Runs the operation in the active tab and returns the response's text. */
export async function run(page) {
  const response = page.waitForResponse((r) => new URL(r.url()).pathname === '/graphql')
  await page.getByRole('button', { name: /^Execute query/ }).click()
  return (await response).text()
}

export function resultPane(page) {
  return page.getByRole('region', { name: 'Result Window' })
}

/** Opens the Explain panel and returns it. */
export async function openExplain(page) {
  await page.getByRole('button', { name: 'Show Explain' }).click()
  return page.getByRole('region', { name: 'Explain' })
}

/** One of the panel's totals, by its label. */
export function total(panel, label) {
  return panel.locator('dl > div').filter({ hasText: label }).locator('dd')
}

/** Opens the editor for Variables or Headers and puts the cursor into it. */
export async function openEditorTool(page, name) {
  await page.getByRole('button', { name, exact: true }).click()
  const tools = page.getByRole('region', { name })
  await tools.locator('.graphiql-editor:not(.hidden) .view-lines').click()
}
