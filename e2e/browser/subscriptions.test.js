import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'

import {
  launchBrowser,
  newVisit,
  nextSocket,
  openEditor,
  openExplain,
  origin,
  resultPane,
  run,
  setHeaders,
  setQuery,
  shown,
} from './session.js'

const FOLLOW = 'subscription Follow { orderStatusChanged { orderId } }'

/** Places an order, as somebody else would; each is another one. */
async function placeOrder() {
  const response = await fetch(`${origin}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      query:
        'mutation { placeOrder(input: { customerId: "cust_01", items: [{ sku: "prod_100", quantity: 1 }] }) { order { id } userErrors { message } } }',
    }),
  })
  const { data, errors } = await response.json()
  assert.ok(data?.placeOrder?.order, JSON.stringify(errors ?? data))
  return data.placeOrder.order.id
}

/**
 * Takes the page's sockets in the server's place. Each message of the client
 * goes to answer, with the socket; what they are is kept.
 */
async function actAsServer(page, answer) {
  const acted = { sockets: [], messages: [], closed: new Set() }
  await page.routeWebSocket('**/graphql', (socket) => {
    acted.sockets.push(socket)
    socket.onMessage((text) => {
      const message = JSON.parse(text)
      acted.messages.push(message)
      if (message.type === 'connection_init') {
        answer.init ? answer.init(socket, message) : socket.send('{"type":"connection_ack"}')
      } else if (message.type === 'subscribe') {
        answer.subscribe?.(socket, message)
      }
    })
    socket.onClose((code, reason) => {
      acted.closed.add(socket)
      return socket.close({ code, reason })
    })
  })
  return acted
}

const next = (id, data) => JSON.stringify({ id, type: 'next', payload: { data } })

/** Waits until what a test has seen is as it should be. */
async function until(page, holds) {
  const end = Date.now() + 20_000
  while (!holds()) {
    assert.ok(Date.now() < end, `in vain: ${holds}`)
    await page.waitForTimeout(20)
  }
}

const executing = (page) => page.getByRole('button', { name: /^Execute query/ })
const stopping = (page) => page.getByRole('button', { name: /^Stop query/ })

describe('subscriptions in the query editor', { timeout: 180_000 }, () => {
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
  })

  afterEach(async () => {
    await visit.page.context().close()
    assert.deepEqual(visit.foreign, [], 'requests to other origins')
    assert.deepEqual(visit.complaints, [], 'errors and policy violations')
  })

  test('the page shows an order that somebody else places', async () => {
    const { page } = visit
    await openEditor(page)
    await setQuery(page, 'subscription { orderStatusChanged { order { id customer { name } } } }')
    // What is run before the schema has come runs nothing.
    await page.waitForLoadState('networkidle')
    const socket = nextSocket(page)
    await executing(page).click()
    await socket.acknowledged
    // The subscription starts a moment later. The server delivers no earlier changes.
    const placed = []
    for (let seen = false; !seen; ) {
      placed.push(await placeOrder())
      seen = await resultPane(page)
        .getByText('orderStatusChanged')
        .first()
        .waitFor({ timeout: 1000 })
        .then(
          () => true,
          () => false,
        )
    }
    const { data } = JSON.parse(await shown(page))
    assert.ok(placed.includes(data.orderStatusChanged.order.id), JSON.stringify(data))
    assert.equal(data.orderStatusChanged.order.customer.name, 'Alice Chen')

    await stopping(page).click()
    await socket.closed
    await executing(page).waitFor()
  })

  test('each run opens a connection with the token that is in Headers then', async () => {
    const { page } = visit
    const acted = await actAsServer(page, {
      subscribe: (socket, { id }) => socket.send(next(id, { run: acted.sockets.length })),
    })
    await openEditor(page)
    assert.equal(acted.sockets.length, 0, 'no connection before one is needed')
    await setQuery(page, FOLLOW, 'Follow')
    await executing(page).click()
    await resultPane(page).getByText('run').waitFor()
    await stopping(page).click()
    await until(page, () => acted.closed.size === 1)

    for (const [runs, token] of [[2, 'first'], [3, 'second']]) {
      await setHeaders(page, { authorization: `Bearer ${token}`, 'X-Other': '1' })
      await executing(page).click()
      await until(page, () => acted.messages.filter((m) => m.type === 'subscribe').length === runs)
      await stopping(page).click()
      await until(page, () => acted.closed.size === runs)
    }
    const inits = acted.messages.filter((m) => m.type === 'connection_init')
    assert.deepEqual(
      inits.map((m) => m.payload?.Authorization),
      [undefined, 'Bearer first', 'Bearer second'],
    )
    assert.ok(inits.every((m) => !JSON.stringify(m).includes('X-Other')))
    const subscribe = acted.messages.find((m) => m.type === 'subscribe')
    assert.equal(subscribe.payload.operationName, 'Follow')
    assert.match(subscribe.payload.query, /orderStatusChanged/)
  })

  test('leaving the tab ends the subscription', async () => {
    const { page } = visit
    const acted = await actAsServer(page, {
      subscribe: (socket, { id }) => socket.send(next(id, { running: true })),
    })
    await openEditor(page)
    await setQuery(page, FOLLOW, 'Follow')
    await executing(page).click()
    await resultPane(page).getByText('running').waitFor()
    await page.getByRole('tab', { name: 'Stock' }).click()
    await until(page, () => acted.closed.size === 1)
    assert.equal(acted.sockets.length, 1)
  })

  test('the last update stays when the server completes', async () => {
    const { page } = visit
    const acted = await actAsServer(page, {
      subscribe: (socket, { id }) => {
        socket.send(next(id, { step: 1 }))
        socket.send(next(id, { step: 2 }))
        socket.send(JSON.stringify({ id, type: 'complete' }))
      },
    })
    await openEditor(page)
    await setQuery(page, FOLLOW, 'Follow')
    await executing(page).click()
    await until(page, () => acted.closed.size === 1)
    await executing(page).waitFor()
    assert.deepEqual(JSON.parse(await shown(page)), { data: { step: 2 } })
  })

  test('errors and the reasons of closed connections are shown, and nothing is tried again', async () => {
    const { page } = visit
    let act
    const acted = await actAsServer(page, {
      init: (socket, message) => act.init(socket, message),
      subscribe: (socket, message) => act.subscribe?.(socket, message),
    })
    await openEditor(page)
    await setQuery(page, FOLLOW, 'Follow')
    const ack = (socket) => socket.send('{"type":"connection_ack"}')
    const errors = [{ message: 'there is no such order', extensions: { code: 'NOT_FOUND' } }]
    let runs = 0
    for (const [does, says] of [
      [
        {
          init: ack,
          subscribe: (s, { id }) => s.send(JSON.stringify({ id, type: 'error', payload: errors })),
        },
        ['there is no such order', 'NOT_FOUND'],
      ],
      [{ init: (s) => s.close({ code: 4401, reason: 'Unauthorized' }) }, ['4401', 'Unauthorized', 'into Headers']],
      [{ init: (s) => s.close({ code: 4403, reason: 'Forbidden' }) }, ['4403', 'Forbidden', 'into Headers']],
      [
        {
          init: ack,
          subscribe: (s, { id }) => {
            s.send(next(id, { step: 1 }))
            s.close({ code: 4403, reason: 'Token expired' })
          },
        },
        ['4403', 'Token expired'],
      ],
      [{ init: ack, subscribe: (s) => s.close({ code: 1012, reason: '' }) }, ['1012', 'restarting']],
    ]) {
      act = does
      await executing(page).click()
      runs++
      await resultPane(page).getByText(says[0]).first().waitFor()
      const result = JSON.parse(await shown(page))
      assert.equal(result.errors.length, 1)
      for (const part of says) {
        assert.ok(JSON.stringify(result).replaceAll('\\"', '"').includes(part), `${part}: ${JSON.stringify(result)}`)
      }
      await executing(page).waitFor()
      assert.equal(acted.sockets.length, runs)
    }
  })

  test('a query is still sent by HTTP, and explained', async () => {
    const { page } = visit
    const acted = await actAsServer(page, {})
    await openEditor(page)
    await setQuery(page, 'query Ask { customer(id: "cust_01") { name } }', 'Ask')
    const panel = await openExplain(page)
    await run(page)
    await panel.getByText('AP6', { exact: true }).waitFor()
    assert.equal(acted.sockets.length, 0)
  })
})
