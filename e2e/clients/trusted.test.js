import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { ApolloClient, HttpLink, InMemoryCache, gql } from '@apollo/client'
import { PersistedQueryLink } from '@apollo/client/link/persisted-queries'
import { generatePersistedQueryIdsFromManifest } from '@apollo/persisted-query-lists'
import { Client, fetchExchange } from '@urql/core'
import { persistedExchange } from '@urql/exchange-persisted'
import { program, start } from './server.js'
import { recorded } from './shop.js'

const here = import.meta.dirname
const scratch = mkdtempSync(join(tmpdir(), 'ordergraph-trusted-'))
const manifest = join(scratch, 'manifest.json')
const text = (name) => readFileSync(join(here, 'operations', `${name}.graphql`), 'utf8')

let server
let endpoint

before(async () => {
  const config = join(scratch, 'config.json')
  writeFileSync(config, JSON.stringify({ documents: [join(here, 'operations/*.graphql')], output: manifest }))
  execFileSync(process.execPath, [join(here, 'node_modules/.bin/generate-persisted-query-manifest'), '-c', config])

  ;({ child: server, endpoint } = await start({ ORDERGRAPH_DOCUMENTS: manifest, ORDERGRAPH_TRUSTED_ONLY: 'on' }))
})

after(() => {
  server?.kill()
  rmSync(scratch, { recursive: true })
})

/** An Apollo Client that names documents by their ids in the manifest. */
function newApollo() {
  const { requests, fetcher } = recorded()
  const ids = generatePersistedQueryIdsFromManifest({ loadManifest: async () => JSON.parse(readFileSync(manifest, 'utf8')) })
  const link = new PersistedQueryLink(ids).concat(new HttpLink({ uri: endpoint, fetch: fetcher }))
  return { client: new ApolloClient({ link, cache: new InMemoryCache() }), requests }
}

test('Apollo Client names trusted documents, and sends no text', { timeout: 60_000 }, async () => {
  const { client, requests } = newApollo()
  const { data } = await client.query({ query: gql(text('customersOrders')), variables: { customer: 'cust_01', first: 5 } })
  assert.equal(data.customer.name, 'Alice Chen')
  const pending = data.customer.orders.nodes.find((order) => order.status === 'PENDING')

  const confirmed = await client.mutate({ mutation: gql(text('confirmOrder')), variables: { order: pending.id } })
  assert.deepEqual(confirmed.data.confirmOrder.userErrors, [])
  assert.equal(confirmed.data.confirmOrder.order.status, 'CONFIRMED')
  assert.deepEqual(requests.map((r) => r.withText), [false, false])
})

test('urql names trusted documents, and sends no text', { timeout: 60_000 }, async () => {
  const { requests, fetcher } = recorded()
  const operation = JSON.parse(readFileSync(manifest, 'utf8')).operations.find((o) => o.name === 'CustomersOrders')
  const client = new Client({
    url: endpoint,
    fetch: fetcher,
    exchanges: [persistedExchange({ enforcePersistedQueries: true, preferGetForPersistedQueries: false, generateHash: async () => operation.id }), fetchExchange],
  })
  const { data, error } = await client.query(text('customersOrders'), { customer: 'cust_01', first: 5 }).toPromise()
  assert.equal(error, undefined)
  assert.equal(data.customer.name, 'Alice Chen')
  assert.deepEqual(requests.map((r) => r.withText), [false])
})

test('whatever is not trusted is refused, whichever way it comes', { timeout: 60_000 }, async () => {
  const query = '{ customer(id: "cust_01") { name } }'
  const sha256Hash = '0'.repeat(64)
  const trusted = JSON.parse(readFileSync(manifest, 'utf8')).operations[0]
  for (const body of [
    { query },
    { query: trusted.body },
    { query: '{ __schema { types { name } } }' },
    { query: '{ _service { sdl } }' },
    { documentId: 'nothing' },
    { query, documentId: trusted.id },
    { query, extensions: { persistedQuery: { version: 1, sha256Hash: trusted.id } } },
    { extensions: { persistedQuery: { version: 1, sha256Hash } } },
    { query, extensions: { persistedQuery: { version: 1, sha256Hash } } },
  ]) {
    for (const send of [
      () => fetch(endpoint, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
      () => fetch(`${endpoint}?${new URLSearchParams(Object.entries(body).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]))}`),
    ]) {
      const { data, errors } = await (await send()).json()
      assert.equal(data, undefined, JSON.stringify(body))
      assert.match(errors[0].extensions.code, /^(DOCUMENT_NOT_TRUSTED|PERSISTED_QUERY_HASH_MISMATCH|BAD_USER_INPUT)$/, JSON.stringify(body))
      assert.doesNotMatch(errors[0].message, /PersistedQueryNotFound/)
    }
  }
})

test('the manifest that a budget allows passes the check, and one over it does not', { timeout: 60_000 }, () => {
  const check = (...flags) => execFileSync(program, ['documents', 'check', manifest, ...flags], { encoding: 'utf8', env: {}, stdio: ['ignore', 'pipe', 'pipe'] })
  assert.match(check('-max-requests', '10'), /2 operations: fine/)
  assert.throws(() => check('-max-requests', '1'), (error) => error.status === 1 && /over the budget .*CustomersOrders/.test(error.stdout))
})
