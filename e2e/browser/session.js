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
export async function newVisit(browser, at = origin) {
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
    if (url.origin !== at) {
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
export async function openEditor(page, at = origin) {
  await page.goto(`${at}/`)
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

/** The tabs of the query editor, one for each operation. */
export function editorTabs(page) {
  return page.locator('.graphiql-sessions').getByRole('tab')
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

/** The result pane's whole text; the pane itself shows only the lines that fit. */
export function shown(page) {
  return page.evaluate(() =>
    globalThis.__MONACO.editor
      .getModels()
      .find((model) => model.uri.path.endsWith('response.json'))
      .getValue(),
  )
}

/** Puts a text into one of the editors at once, as pasting does. */
function fill(page, file, text) {
  return page.evaluate(
    ([file, text]) =>
      globalThis.__MONACO.editor
        .getModels()
        .find((model) => model.uri.path.endsWith(file))
        .setValue(text),
    [file, text],
  )
}

/** Puts headers into the headers editor. */
export function setHeaders(page, headers) {
  return fill(page, 'request-headers.json', JSON.stringify(headers))
}

/** Puts another document into the query editor, and waits until GraphiQL knows the name of its operation. */
export async function setQuery(page, text, name) {
  await fill(page, 'operation.graphql', text)
  await page.locator('.graphiql-sessions').getByRole('tab', { name, selected: true }).waitFor()
}

/** Observes the next WebSocket that the page opens: when the server acknowledges it, and when it is closed. */
export function nextSocket(page) {
  return {
    // Listeners have to be there before the first message is.
    acknowledged: new Promise((resolve) => {
      page.once('websocket', (socket) => socket.once('framereceived', resolve))
    }),
    closed: new Promise((resolve) => {
      page.once('websocket', (socket) => socket.once('close', resolve))
    }),
  }
}

/** All that the page has stored in the browser, as a text. */
export function stored(page) {
  return page.evaluate(async () =>
    JSON.stringify([
      { ...localStorage },
      { ...sessionStorage },
      document.cookie,
      await indexedDB.databases(),
      await caches.keys(),
    ]),
  )
}
