import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'

import {
  editorTabs,
  launchBrowser,
  newVisit,
  openEditor,
  openEditorTool,
  openExplain,
  operations,
  resultPane,
  run,
  setHeaders,
  shown,
  stored,
  total,
} from './session.js'

describe('the query editor', { timeout: 180_000 }, () => {
  let browser
  let visit

  before(async () => {
    browser = await launchBrowser()
  })

  after(async () => {
    await browser?.close()
  })

  beforeEach(async () => {
    visit = await newVisit(browser)
    await openEditor(visit.page)
  })

  // Every test leaves the same demands behind, whatever else it looked at.
  afterEach(async () => {
    await visit.page.context().close()
    assert.deepEqual(visit.foreign, [], 'requests to other origins')
    assert.deepEqual(visit.complaints, [], 'errors and policy violations')
  })

  test('renders the examples as tabs, the first one selected', async () => {
    const { page } = visit
    const tabs = editorTabs(page)
    assert.deepEqual(await tabs.allInnerTexts(), [
      'AlicesOrders',
      'PendingOrders',
      'OrderDetails',
      'Stock',
      'AccountRep',
      'PlaceOrder',
      'OrderChanges',
    ])
    assert.equal(await tabs.first().getAttribute('aria-selected'), 'true')
  })

  test('loads what it loads late from its own origin too', async () => {
    const { page } = visit
    // A worker does its work, and is told of, in no certain order.
    const runs = async (name) => {
      while (!page.workers().some((w) => w.url().includes(name))) {
        await page.waitForEvent('worker')
      }
    }
    // Prettifying loads the formatter; typing wakes the language workers.
    await page.getByRole('button', { name: /^Prettify query/ }).click()
    await page.locator('.graphiql-query-editor .view-lines').click()
    await page.keyboard.press('ControlOrMeta+End')
    await page.keyboard.type('query Typed { cus')
    await page.getByRole('option', { name: 'customerByEmail' }).first().waitFor()
    await runs('graphql.worker')
    await openEditorTool(page, 'Variables')
    await page.keyboard.type('{ "a": }')
    await page.locator('.squiggly-error').first().waitFor()
    await runs('json.worker')
  })

  test('runs the first example', async () => {
    const { page } = visit
    await run(page)
    await resultPane(page).getByText('Alice Chen').waitFor()
  })

  test('explains the first example: two requests, one round trip', async () => {
    const { page } = visit
    const panel = await openExplain(page)
    await panel.getByText('Run a query').waitFor()
    await run(page)
    await panel.getByText('AP6', { exact: true }).waitFor()
    await panel.getByText('AP2', { exact: true }).waitFor()
    assert.equal(await total(panel, 'Requests').innerText(), '2')
    assert.equal(await total(panel, 'Round trips').innerText(), '1')
    assert.equal(await total(panel, 'Read units').innerText(), '1')
    assert.equal(await total(panel, 'Per million').innerText(), '$0.125')
    const keys = panel.locator('.explain-key')
    assert.equal(await keys.count(), 2)
    for (const key of await keys.all()) {
      assert.ok(await key.isVisible())
      assert.match(await key.innerText(), /cust_01/)
    }
  })

  test('shows the response without the explain, unless a header of the visitor requested it', async () => {
    const { page } = visit
    const sent = JSON.parse(await run(page))
    assert.ok(sent.extensions?.explain, 'the server sent an explain')
    await resultPane(page).getByText('Alice Chen').waitFor()
    assert.deepEqual(JSON.parse(await shown(page)), { data: sent.data })

    await setHeaders(page, { 'x-ordergraph-explain': 'true' })
    await run(page)
    await page.waitForFunction(() =>
      globalThis.__MONACO.editor.getModels().some((model) => model.getValue().includes('"roundTrips"')),
    )
  })

  test('asks for an explain only while it is switched on, and never for the schema', async () => {
    const { page } = visit
    const panel = await openExplain(page)
    const toggle = panel.getByRole('switch', { name: 'Explain queries' })
    assert.ok(await toggle.isChecked(), 'on at first')
    await run(page)
    await panel.getByText('AP6', { exact: true }).waitFor()
    await toggle.uncheck()
    await run(page)
    await panel.getByText('This query ran with explain off.').waitFor()

    const sent = operations(visit)
    const header = (operation) => operation.headers['x-ordergraph-explain']
    const schema = sent.filter((o) => o.body.operationName === 'IntrospectionQuery')
    const own = sent.filter((o) => o.body.operationName === 'AlicesOrders')
    assert.ok(schema.length > 0, 'the page asked for the schema')
    assert.ok(schema.every((o) => header(o) === undefined))
    assert.deepEqual(own.map(header), ['true', undefined])
  })

  test('says so when the server sends no explain', async () => {
    const { page } = visit
    await page.route('**/graphql', async (route) => {
      const response = await route.fetch()
      const body = await response.json()
      delete body.extensions
      await route.fulfill({ response, json: body })
    })
    const panel = await openExplain(page)
    await run(page)
    await panel.getByText('The response contains no explain output').waitFor()
  })

  test('groups requests by round trip, and does without where it is not told', async () => {
    const { page } = visit
    const request = {
      accessPattern: 'AP2',
      operation: 'Query',
      index: 'GSI1',
      key: 'a key',
      path: 'customer.orders',
      items: 1,
      readUnits: 0.5,
      writeUnits: 0,
      durationMs: 1,
    }
    let requests
    let price
    await page.route('**/graphql', (route) => {
      const totals = { requests: requests.length, roundTrips: 2, readUnits: 1.5, writeUnits: 0, dollarsPerMillion: price }
      return route.fulfill({ json: { data: null, extensions: { explain: { requests, totals } } } })
    })
    const panel = await openExplain(page)
    const headings = panel.locator('th[scope=rowgroup]')
    const rows = panel.locator('th[scope=row]')

    requests = [1, 1, 2].map((roundTrip) => ({ ...request, roundTrip }))
    price = 1234.6
    await run(page)
    await rows.nth(2).waitFor()
    assert.deepEqual(await headings.allInnerTexts(), [
      'Round trip 1: 2 requests at once',
      'Round trip 2: 1 request',
    ])
    assert.equal(await total(panel, 'Per million').innerText(), '$1,235')

    requests = [request, request]
    price = undefined
    await run(page)
    await rows.nth(2).waitFor({ state: 'detached' })
    assert.equal(await rows.count(), 2)
    assert.equal(await headings.count(), 0)
    assert.equal(await total(panel, 'Per million').count(), 0)
  })

  test('documents the schema', async () => {
    const { page } = visit
    await page.getByRole('button', { name: 'Show Documentation Explorer' }).click()
    const docs = page.getByRole('region', { name: 'Documentation Explorer' })
    await docs.getByRole('link', { name: 'Query', exact: true }).click()
    await docs.getByRole('link', { name: 'customer', exact: true }).waitFor()
  })

  test("documents the schema with the server's own description", async () => {
    const { page } = visit
    await page.getByRole('button', { name: 'Show Documentation Explorer' }).click()
    const docs = page.getByRole('region', { name: 'Documentation Explorer' })
    await docs.getByText('never scans the table').waitFor()
  })

  for (const width of [390, 820]) {
    test(`can be used at a width of ${width} px`, async () => {
      const { page } = visit
      await page.setViewportSize({ width, height: 900 })
      const panel = await openExplain(page)
      await run(page)
      await panel.getByText('AP6', { exact: true }).waitFor()
      const wide = async (locator) => (await locator.boundingBox()).width
      assert.ok((await wide(resultPane(page))) > 300, 'lines of the response have room')
      assert.ok((await wide(page.locator('.graphiql-query-editor'))) > 300)
      // Nothing of the panel is cut off, and the page does not scroll sideways.
      for (const element of [panel, page.locator('html')]) {
        assert.ok(await element.evaluate((e) => e.scrollWidth <= e.clientWidth))
      }
    })
  }

  test("keeps the visitor's own tabs, but not their headers", async () => {
    const { page } = visit
    await openEditorTool(page, 'Headers')
    await page.keyboard.type('{ "X-Secret": "xyzzy" }')
    await run(page)
    // The history is stored when an operation is run, tabs half a second after they last changed.
    await page.waitForFunction(() => localStorage['graphiql:queries']?.includes('AlicesOrders'))
    await page.getByRole('button', { name: 'Show History' }).click()
    await page.getByRole('button', { name: 'Add favorite' }).first().click()
    await page.waitForFunction(() => localStorage['graphiql:favorites']?.includes('AlicesOrders'))
    await page.getByRole('tab', { name: 'Stock' }).click()
    await page.getByRole('button', { name: 'Close Tab' }).click()
    await page.waitForFunction(() => !localStorage['graphiql:tabState']?.includes('query Stock'))
    assert.ok(!(await stored(page)).includes('xyzzy'), 'the header is stored')

    await page.reload()
    await page.locator('.graphiql-query-editor .view-line').first().waitFor()
    assert.deepEqual(await editorTabs(page).allInnerTexts(), [
      'AlicesOrders',
      'PendingOrders',
      'OrderDetails',
      'AccountRep',
      'PlaceOrder',
      'OrderChanges',
    ])
    assert.ok(!(await stored(page)).includes('xyzzy'), 'the header is stored after a reload')
  })

  test('takes away headers that an earlier version of the page has stored', async () => {
    const { page } = visit
    const operation = { query: '{ __typename }', variables: '{"headers": 1}', headers: '{"X-Secret": "xyzzy"}' }
    await page.evaluate((operation) => {
      const tab = { ...operation, id: 'a', title: 'Kept', operationName: 'Kept', response: null }
      localStorage.clear()
      localStorage['graphiql:headers'] = operation.headers
      localStorage['graphiql:queries'] = JSON.stringify({ queries: [operation] })
      localStorage['graphiql:favorites'] = JSON.stringify({ favorites: [{ ...operation, label: 'Liked' }] })
      localStorage['graphiql:tabState'] = JSON.stringify({ activeTabIndex: 0, tabs: [tab] })
      localStorage['another:page'] = 'xyzzy plover'
    }, operation)
    await page.reload()
    await page.getByRole('tab', { name: 'Kept' }).waitFor()
    const left = await stored(page)
    assert.equal(left.split('xyzzy').length - 1, 1, left) // the other page's own
    assert.ok(left.includes('Liked') && left.includes('__typename'), left)
  })
})
