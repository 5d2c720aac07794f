import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, describe, test } from 'node:test'

import {
  launchBrowser,
  newVisit,
  nextSocket,
  openEditor,
  resultPane,
  run,
  setHeaders,
  setQuery,
  shown,
  stored,
} from './session.js'

const program = process.env.ORDERGRAPH
if (!program) {
  throw new Error('set ORDERGRAPH to the path of the built server')
}

describe('the query editor of a server that wants tokens', { timeout: 180_000 }, () => {
  const scratch = mkdtempSync(join(tmpdir(), 'ordergraph-tokens-'))
  const key = join(scratch, 'key.pem')
  const environment = {
    ORDERGRAPH_STORE: 'embedded',
    ORDERGRAPH_AUTH: 'jwt',
    ORDERGRAPH_JWT_JWKS: `${key}.jwks.json`,
    ORDERGRAPH_JWT_ISSUER: 'browser-test',
    ORDERGRAPH_JWT_AUDIENCE: 'ordergraph',
    ORDERGRAPH_CURSOR_KEY: 'a key of this test',
  }
  const ordergraph = (...words) =>
    execFileSync(program, words, { env: environment, encoding: 'utf8' }).trim()
  let server
  let at
  let browser

  before(async () => {
    ordergraph('token', 'key', key)
    server = spawn(program, ['-addr', '127.0.0.1:0'], {
      env: environment,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    for await (const line of createInterface({ input: server.stdout })) {
      at = line.match(/^ *GraphQL +(\S+)\/graphql$/)?.[1]
      if (at) {
        break
      }
    }
    assert.ok(at, 'the server starts')
    browser = await launchBrowser()
  })

  after(async () => {
    await browser?.close()
    server?.kill()
    rmSync(scratch, { recursive: true })
  })

  test('the page asks for a token, uses it and does not store it', async () => {
    const visit = await newVisit(browser, at)
    const { page } = visit
    await openEditor(page, at)
    const notice = page.getByRole('status').filter({ hasText: 'Put a token into Headers' })
    await notice.waitFor()
    await resultPane(page).getByText('refused the schema query').first().waitFor()

    const token = ordergraph('token', '-key', key, '-role', 'STAFF')
    await setHeaders(page, { Authorization: `Bearer ${token}` })
    await notice.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Show Documentation Explorer' }).click()
    await page.getByRole('link', { name: 'Subscription', exact: true }).waitFor()

    const { data } = JSON.parse(await run(page))
    assert.equal(data.customer.name, 'Alice Chen')
    await setQuery(page, 'subscription Follow { orderStatusChanged { orderId } }', 'Follow')
    const socket = nextSocket(page)
    await page.getByRole('button', { name: /^Execute query/ }).click()
    await socket.acknowledged
    await page.getByRole('button', { name: /^Stop query/ }).click()
    await socket.closed

    await page.waitForFunction(() => localStorage['graphiql:tabState']?.includes('Follow'))
    const everything = await stored(page)
    for (const part of token.split('.')) {
      assert.ok(!everything.includes(part), 'the token is stored')
    }
    await page.reload()
    await notice.waitFor()
    assert.deepEqual(visit.foreign, [])
    assert.ok(
      visit.complaints.every((c) => c.includes('401')),
      visit.complaints.join('\n'),
    )
    await page.context().close()
  })

  test('a token that is not valid is told in words', async () => {
    const visit = await newVisit(browser, at)
    const { page } = visit
    await openEditor(page, at)
    await setQuery(page, 'subscription Follow { orderStatusChanged { orderId } }', 'Follow')
    const execute = page.getByRole('button', { name: /^Execute query/ })
    await execute.click()
    await resultPane(page).getByText('4403').first().waitFor()
    assert.match(JSON.parse(await shown(page)).errors[0].message, /into Headers/)
    await setHeaders(page, { Authorization: 'Bearer nonsense' })
    // The schema is asked for with it as well, and refused.
    await page.waitForResponse((r) => r.status() === 401)
    await execute.click()
    await resultPane(page).getByText('4403').first().waitFor()
    await page.context().close()
  })

  test("a customer's token runs the customer's operations, without documentation", async () => {
    const visit = await newVisit(browser, at)
    const { page } = visit
    await openEditor(page, at)
    const token = ordergraph('token', '-key', key, '-role', 'CUSTOMER', '-customer', 'cust_01')
    await setHeaders(page, { Authorization: `Bearer ${token}` })
    await page.getByRole('status').filter({ hasText: 'FORBIDDEN' }).waitFor()
    const { data } = JSON.parse(await run(page))
    assert.equal(data.customer.name, 'Alice Chen')
    await page.context().close()
  })
})
