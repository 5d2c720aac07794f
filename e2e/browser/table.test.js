import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'

import { AxeBuilder } from '@axe-core/playwright'

import { editorTabs, launchBrowser, newVisit, openEditor, operations, origin, run, stored } from './session.js'

const EXTENSION = 'enum Channel { WEB APP }\n\nextend type Order {\n  channel: Channel! @field(default: "WEB") @list(query: "ordersByChannel")\n}\n'

/** The most bytes that the tab may transfer when it is opened. */
const MAX_TRANSFER = 300_000

describe('the Table tab', { timeout: 900_000 }, () => {
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
    await visit.page.emulateMedia({ reducedMotion: 'reduce' })
    await openTable(visit.page)
  })

  afterEach(async () => {
    await visit.page.context().close()
    assert.deepEqual(visit.foreign, [], 'requests to other origins')
    assert.deepEqual(visit.complaints, [], 'errors and policy violations')
  })

  test('is small, and loads neither GraphiQL nor Monaco', async () => {
    const sizes = await Promise.all(visit.requests.map((request) => request.sizes()))
    const total = sizes.reduce((sum, s) => sum + s.responseBodySize + s.responseHeadersSize, 0)
    assert.ok(total < MAX_TRANSFER, `${total} bytes`)
    const urls = visit.requests.map((request) => request.url()).join('\n')
    assert.doesNotMatch(urls, /monaco|App-|worker/)
    console.log(`#table: ${visit.requests.length} requests, ${total} bytes`)
  })

  test('is reached from GraphiQL and back, by mouse, keyboard and address', async () => {
    const { page } = visit
    const tab = (name) => page.getByRole('tab', { name, exact: true })
    await tab('Table').focus()
    await page.keyboard.press('ArrowLeft')
    await editorTabs(page).first().waitFor()
    assert.ok(!page.url().includes('#table'))
    await page.keyboard.press('ArrowRight')
    await card(page, 'Table: CUSTOMER#{customerId}').waitFor()
    assert.match(page.url(), /#table$/)
    await page.goBack()
    await page.locator('.graphiql-query-editor').waitFor()
    await tab('Table').click()
    await card(page, 'Table: CUSTOMER#{customerId}').waitFor()
  })

  test('draws the item collections of the table and its index', async () => {
    const { page } = visit
    const order = card(page, 'Table: ORDER#{orderId}')
    await order.getByText('orderItem', { exact: true }).waitFor()
    const copy = card(page, 'Table: CUSTOMER#{customerId}').getByRole('listitem').filter({ hasText: 'customerOrder' })
    assert.match(await copy.innerText(), /ORDER#\{orderId\}.*derives from order.*in GSI1: REP#\{employeeId\}/)
    const status = card(page, 'Index: STATUS#{status}')
    assert.match(await status.innerText(), /shard/)
    await page.getByText('Sharded keys have').waitFor()
    // Lines join what the text in the cards says.
    await page.locator('.line-derives path').first().waitFor({ state: 'attached' })
    await page.locator('.line-index path').first().waitFor({ state: 'attached' })
    await page.setViewportSize({ width: 390, height: 900 })
    await page.locator('.line').first().waitFor({ state: 'detached' })
  })

  test('tells why orders with their customers take two requests', async () => {
    const { page } = visit
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    await page.getByText('2 requests in 2 round trips').waitFor()
    const steps = page.locator('.steps > li')
    assert.match(await steps.nth(0).innerText(), /One Query on the index GSI1[^]*STATUS#pending ORDER#\*/)
    assert.match(
      await steps.nth(1).innerText(),
      /One BatchGetItem reads \d+ customer records\. It must wait, because the order record contains only the customerId/,
    )
    assert.match(await page.getByRole('tabpanel', { name: 'Query' }).innerText(), /read units, .*ms in DynamoDB. A million of them cost \$/)
    // Both keys are lit up, and nothing else is on the picture.
    assert.equal(await page.locator('.card').count(), 2)
    assert.match(await card(page, 'Index: STATUS#{status}').innerText(), /1\s*Query STATUS#pending/)
    assert.match(await card(page, 'Table: CUSTOMER#{customerId}').innerText(), /2\s*BatchGetItem\s+CUSTOMER#/)
    const batch = card(page, 'Table: CUSTOMER#{customerId}').locator('.notes > li')
    assert.equal(await batch.count(), 1, 'one line for one request')
    assert.ok((await batch.getByRole('listitem').count()) > 1, 'its keys are below')
    await page.locator('.line-reads').getByText('customerId').waitFor()
    // The first step alone.
    await page.getByRole('button', { name: 'Round trip 1' }).click()
    await card(page, 'Table: CUSTOMER#{customerId}').waitFor({ state: 'detached' })
    await page.getByLabel('Only the marked cards').uncheck()
    assert.ok((await page.locator('.card').count()) > 20)
    const [sent] = operations(visit)
    assert.equal(sent.headers['x-ordergraph-explain'], 'true')
  })

  test('names the records before the end of a key condition, and the field that the next request needs', async () => {
    const { page } = visit
    await page.getByLabel('Example').selectOption('An order, its timeline and its products')
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    const steps = page.locator('.steps > li')
    assert.match(await steps.nth(0).innerText(), /One Query reads \d+ order, orderItem and orderEvent records\.[^]*sk < PAYMENT#/)
    assert.match(await steps.nth(1).innerText(), /the orderItem record contains only the productId, and the key PRODUCT#/)
    const marked = card(page, 'Table: ORDER#{orderId}').locator('.records li[data-marked=true] b')
    assert.deepEqual(await marked.allInnerTexts(), ['order', 'orderItem', 'orderEvent'])
    await page.locator('.line-reads').getByText('productId').waitFor()
    // Another example leaves nothing of this run.
    await page.getByLabel('Example').selectOption('A customer and her newest orders')
    await steps.first().waitFor({ state: 'detached' })
    assert.equal(await page.locator('.card[data-marked=true]').count(), 0)
    assert.equal(await page.getByText('Response', { exact: true }).count(), 0)
    assert.equal(await page.getByLabel('Only the marked cards').count(), 0)
  })

  test('lights up one round trip after another', async () => {
    const { page } = visit
    await page.emulateMedia({ reducedMotion: 'no-preference' })
    await page.getByRole('button', { name: 'Run', exact: true }).click()
    const current = page.locator('.steps > li[data-current=true]')
    await current.filter({ hasText: 'Round trip 1' }).waitFor()
    assert.equal(await page.locator('.card').count(), 1)
    await current.filter({ hasText: 'Round trip 2' }).waitFor()
    assert.equal(await page.locator('.card').count(), 2)
  })

  test('runs other examples, with variables, and shows mistakes plainly', async () => {
    const { page } = visit
    for (const option of ['A customer and her newest orders', 'An order, its timeline and its products', 'Place an order (writes)']) {
      await page.getByLabel('Example').selectOption(option)
      await page.getByRole('button', { name: 'Run', exact: true }).click()
      await page.locator('.steps > li').first().waitFor()
      assert.ok((await page.locator('.card[data-marked=true]').count()) > 0, option)
      await page.getByText('Response', { exact: true }).waitFor()
    }
    await page.getByLabel('Variables').fill('{')
    await page.keyboard.press('Control+Enter')
    await page.getByRole('alert').getByText('The variables are not JSON').waitFor()
    await page.getByLabel('Variables').fill('')
    await page.getByRole('textbox', { name: 'Query' }).fill('{ nonsense }')
    await page.keyboard.press('Control+Enter')
    await page.getByRole('alert').getByText('nonsense').waitFor()
    await page.getByLabel('Example').selectOption('Pending orders and their customers')
    await page.getByRole('alert').getByText('nonsense').waitFor({ state: 'detached' })
    visit.complaints.length = 0 // the server refused the query with the status 400
  })

  test('shows the last run of GraphiQL', async () => {
    const { page } = visit
    await openEditor(page)
    await run(page)
    await page.getByRole('tab', { name: 'Table', exact: true }).click()
    await page.getByRole('button', { name: 'Show the last run in GraphiQL' }).click()
    await page.getByText('2 requests in 1 round trip').waitFor()
    assert.match(await page.locator('.steps').innerText(), /AP2 Query CUSTOMER#cust_01 ORDER#\*/)
  })

  test('shows the request of an access pattern, by mouse and keyboard', async () => {
    const { page } = visit
    await page.getByRole('tab', { name: 'Patterns' }).click()
    const details = page.getByRole('region', { name: 'Access pattern' })
    await page.getByRole('option', { name: /^AP3 / }).hover()
    await details.getByText('KeyConditionExpression').waitFor()
    const text = await details.innerText()
    assert.match(text, /on the index GSI1: STATUS#\{status\} ORDER#\*, descending/)
    assert.match(text, /"IndexName": "GSI1"/)
    assert.match(text, /Query\.ordersByStatus/)
    assert.equal(await page.locator('.card[data-marked=true]').getAttribute('aria-label'), 'Index: STATUS#{status}')

    const list = page.getByRole('listbox', { name: 'Access patterns' })
    await list.focus()
    await page.keyboard.press('Home')
    await page.keyboard.press('ArrowDown')
    await details.getByText('AP2', { exact: true }).waitFor()
    assert.equal(await list.getAttribute('aria-activedescendant'), 'pattern-AP2')
    await page.getByLabel('Find a field').fill('orderCounts')
    assert.deepEqual(await page.getByRole('option').allInnerTexts(), ['AP34 Query.orderCounts'])
  })

  test('names the hottest key, when to add shards, and the price', async () => {
    const { page } = visit
    await page.getByRole('tab', { name: 'Load' }).click()
    const panel = page.getByRole('tabpanel', { name: 'Load' })
    assert.match(await panel.innerText(), /The hottest key is ORDER_COUNTS\. Each order writes \d+ units there/)
    assert.match(await panel.innerText(), /Add shards when there are more than \d+ orders a second/)
    assert.match(await panel.innerText(), /ordergraph table shards 2 changes the number/)
    assert.match(await panel.innerText(), /each page needs one more Query: at least \$0\.063 more/)
    const counts = card(page, 'Table: ORDER_COUNTS')
    const slider = panel.getByRole('slider')
    await slider.focus()
    await page.keyboard.press('End')
    assert.equal(await slider.getAttribute('aria-valuetext'), '10,000 orders a second')
    assert.match(await panel.innerText(), /Add shards: 10,000 orders a second need \d+ shards instead of/)
    assert.match(await panel.innerText(), /writes of a month with 10,000 orders a second cost \$[\d,]+\.\d\d in /)
    assert.match(await counts.innerText(), /ORDER_COUNTS: 80,000 of 1,000 units a second, 8,000\s%/)
    assert.equal(await counts.getAttribute('data-heat'), 'over')
    await page.keyboard.press('Home')
    assert.equal(await counts.getAttribute('data-heat'), 'cool')
    await panel.getByRole('combobox').selectOption('up to 100 %')
    assert.match(await panel.innerText(), /The hottest key is one CUSTOMER#\{customerId\}/)
    assert.match(await panel.innerText(), /2\s% of what one partition can write: 20 of 1,000 units a second/)
    assert.match(
      await panel.innerText(),
      /Shards do not help there, because this key has none\. Its limit is 50 orders a second, if 100 % of them have the same customerId/,
    )
  })

  test('shows what an extension adds and costs, or its mistakes', async () => {
    const { page } = visit
    await page.getByRole('tab', { name: 'New list' }).click()
    const panel = page.getByRole('tabpanel', { name: 'New list' })
    await panel.getByRole('button', { name: 'Show the plan and the price' }).click()
    await panel.getByText('New records: ').waitFor()
    assert.match(await panel.innerText(), /Each order writes 12 more write units, counted over its mutations from placeOrder to deliverOrder\. A million orders cost \$7\.50 more/)
    assert.match(await panel.innerText(), /ordersByChannel: \d+ requests? in \d+ round trips?/)
    assert.match(await panel.innerText(), /ordergraph table apply/)
    assert.ok((await page.locator('.card[data-marked=true]').count()) >= 2)
    await panel.getByRole('button', { name: 'Back to the table as it is' }).click()
    await panel.getByText('New records: ').waitFor({ state: 'detached' })

    // Other records are not free.
    await panel.getByLabel('Schema extension').fill('extend type Customer {\n  tier: String @field @list(query: "customersByTier")\n}\n')
    await panel.getByRole('button', { name: 'Show the plan and the price' }).click()
    await panel.getByText('Orders write nothing more.').waitFor()
    await panel.getByText(/createCustomer, updateCustomer.* can each write 1 more record: customerList\.tier/).waitFor()

    const file = (text) => ({ name: 'shop.graphqls', mimeType: 'text/plain', buffer: Buffer.from(text) })
    await panel.getByLabel('choose a file').setInputFiles(file(EXTENSION))
    await panel.getByText('New records: ').waitFor()

    // A file with a mistake, dropped.
    const dropped = await page.evaluateHandle((text) => {
      const data = new DataTransfer()
      data.items.add(new File([text], 'shop.graphqls'))
      return data
    }, EXTENSION.replace('Channel!', 'Chanel!'))
    await panel.locator('form').dispatchEvent('drop', { dataTransfer: dropped })
    await page.getByRole('alert').getByText('Line 4: ').first().waitFor()
    visit.complaints.length = 0 // the server refused the file with the status 400
  })

  test('computes the load of a proposed list, and says that it is proposed', async () => {
    const { page } = visit
    await page.getByRole('tab', { name: 'New list' }).click()
    await page.getByRole('button', { name: 'Show the plan and the price' }).click()
    await page.getByText('New records: ').waitFor()
    await page.getByRole('tab', { name: 'Load' }).click()
    const panel = page.getByRole('tabpanel', { name: 'Load' })
    await panel.getByText('with the proposed lists of your file').waitFor()
    await page.locator('.picture').getByText('with the proposed lists of your file').waitFor()
    assert.match(await panel.innerText(), /An order writes 82 units/)
    await panel.getByRole('slider').press('Home')
    await panel.getByRole('combobox').selectOption('up to 0.1 %')
    // All orders can have the same value, whatever their customers are.
    const list = card(page, 'Index: LIST#orderList.channel#{channel}')
    assert.match(await list.innerText(), /: 4 of 1,000 units a second, 0\.4\s%, if all orders have the same channel/)
    await panel.getByRole('button', { name: 'Back to the table as it is' }).click()
    await page.getByText('with the proposed lists of your file').first().waitFor({ state: 'detached' })
    assert.match(await panel.innerText(), /An order writes 70 units/)
    assert.equal(await page.evaluate(() => document.activeElement.id), 'tab-load')
  })

  test('shows the index below the table where the screen is narrow', async () => {
    const { page } = visit
    await page.setViewportSize({ width: 390, height: 900 })
    await page.locator('.group').first().waitFor({ state: 'detached' })
    const places = await page.locator('.canvas > *:is(h2, article)').evaluateAll((all) =>
      all.map((e) => `${e.tagName === 'H2' ? 'heading ' : ''}${e.innerText.split(/\s/)[0]} ${e.querySelector('small')?.innerText.split(' ')[0] ?? ''}`),
    )
    const at = places.findIndex((place) => place.startsWith('heading Index'))
    assert.ok(at > 1 && at < places.length - 1, places.join('\n'))
    assert.ok(places.slice(1, at).every((place) => place.endsWith(' table')), places.join('\n'))
    assert.ok(places.slice(at + 1).every((place) => place.endsWith(' index')), places.join('\n'))
  })

  test('reads real items, page by page, and jumps to another collection', async () => {
    const { page } = visit
    // Pages of one order are enough.
    await page.route('**/table', async (route) => {
      const response = await route.fetch()
      await route.fulfill({ response, body: (await response.text()).replaceAll('first: 20', 'first: 1') })
    })
    await page.reload()
    await card(page, 'Table: CUSTOMER#{customerId}').getByRole('button').click()
    const panel = page.getByRole('tabpanel', { name: 'Items' })
    await panel.getByRole('textbox', { name: 'customerId' }).fill('cust_01')
    await page.keyboard.press('Enter')
    await panel.getByText('Alice Chen').first().waitFor()
    const orders = panel.getByRole('button', { name: /^01/ })
    assert.equal(await orders.count(), 1)
    await panel.getByRole('button', { name: 'Next page' }).click()
    await orders.nth(1).waitFor()
    const ids = await orders.allInnerTexts()
    assert.equal(new Set(ids).size, ids.length, 'another order')
    // An order of the customer leads to its own collection.
    await panel.getByRole('button', { name: /^01/ }).first().click()
    await panel.getByText('ORDER#{orderId}').waitFor()
    await panel.getByText(/PENDING|CONFIRMED|SHIPPED|DELIVERED/).first().waitFor()
    const focused = () => page.evaluate(() => document.activeElement.textContent)
    assert.match(await focused(), /^Item collection ORDER#/)
    await panel.getByRole('button', { name: 'cust_01' }).first().click()
    await panel.getByText('Alice Chen').first().waitFor()
    // Back to the order, and to the customer.
    await panel.getByRole('button', { name: 'Back' }).click()
    await panel.getByText('ORDER#{orderId}').waitFor()
    await panel.getByRole('button', { name: 'Back' }).click()
    await panel.getByText('Alice Chen').first().waitFor()
    assert.match(await focused(), /^Item collection CUSTOMER#/)
    assert.equal(await panel.getByRole('button', { name: 'Back' }).count(), 0)
    await panel.getByRole('textbox', { name: 'customerId' }).fill('nobody')
    await page.keyboard.press('Enter')
    await panel.getByText('No records').waitFor()

    await page.getByLabel('Only the marked cards').uncheck()
    await card(page, 'Index: STATUS#{status}').getByRole('button').click()
    const status = panel.getByRole('combobox', { name: 'status' })
    assert.deepEqual((await status.locator('option').allInnerTexts()).slice(0, 2), ['PENDING', 'CONFIRMED'])
    await page.route('**/graphql', (route) => route.fulfill({ status: 500, json: { errors: [{ message: 'out of order' }] } }))
    await status.selectOption('CONFIRMED')
    await panel.getByRole('button', { name: 'Read items' }).click()
    await page.getByRole('alert').getByText('out of order').waitFor()
    visit.complaints.length = 0 // the response of the test
    await page.unroute('**/graphql')
    await status.selectOption('PENDING')
    await panel.getByRole('button', { name: 'Read items' }).click()
    await panel.getByRole('button', { name: /^01/ }).first().waitFor()
    assert.ok(!(await page.getByRole('alert').isVisible()))
  })

  test('keeps the token out of the storage, and says why it was refused', async () => {
    const { page } = visit
    await page.route('**/table', (route) =>
      route.request().headers()['authorization'] === 'Bearer right'
        ? route.continue({ headers: {} })
        : route.fulfill({ status: 401, json: { errors: [{ message: 'a token is required', extensions: { code: 'UNAUTHENTICATED' } }] } }),
    )
    await page.reload()
    await page.getByRole('alert').getByText('UNAUTHENTICATED a token is required').waitFor()
    await page.getByLabel('Token of a caller').fill('right')
    await page.keyboard.press('Enter')
    await page.locator('.card').first().waitFor()
    assert.ok(!(await stored(page)).includes('right'))
    visit.complaints.length = 0
  })

  for (const colorScheme of ['light', 'dark']) {
    for (const width of [390, 820, 1440, 2000]) {
      test(`has no barriers in ${colorScheme} at ${width} px`, async () => {
        const { page } = visit
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
        await page.setViewportSize({ width, height: 900 })
        const check = async (what) => {
          const { violations } = await new AxeBuilder({ page }).exclude('.graphiql-container').analyze()
          const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map((n) => n.html).join('\n')}`)
          assert.deepEqual(found, [], what)
          assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), what)
        }
        await check('all cards')
        await page.getByRole('button', { name: 'Run', exact: true }).click()
        await page.locator('.steps').waitFor()
        await page.getByText('Response', { exact: true }).click()
        await check('a run')
        await page.getByRole('tab', { name: 'Patterns' }).click()
        await page.getByRole('option', { name: /^AP3 / }).hover()
        await check('an access pattern')
        await page.getByRole('tab', { name: 'Load' }).click()
        await check('the load')
        await page.getByRole('slider').press('End')
        await check('too much load')
        await page.getByRole('tab', { name: 'New list' }).click()
        await page.getByRole('button', { name: 'Show the plan and the price' }).click()
        await page.getByText('New records: ').waitFor()
        await check('a new list')
        await page.getByRole('tab', { name: 'Load' }).click()
        await check('the load of a new list')
        await page.getByRole('button', { name: 'Back to the table as it is' }).first().click()
        await page.getByText('with the proposed lists of your file').first().waitFor({ state: 'detached' })
        await page.getByRole('button', { name: 'CUSTOMER#{customerId}' }).first().click()
        await page.getByRole('textbox', { name: 'customerId' }).fill('cust_01')
        await page.keyboard.press('Enter')
        await page.locator('#panel-items').getByText('Alice Chen').first().waitFor()
        await check('items')
      })
    }
  }
})

async function openTable(page) {
  await page.goto(`${origin}/#table`)
  await page.locator('.card').first().waitFor()
}

function card(page, name) {
  return page.getByRole('article', { name, exact: true })
}
