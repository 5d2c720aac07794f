import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'

import { root } from './schema.js'
import { start } from './server.js'

const directory = mkdtempSync(join(tmpdir(), 'ordergraph-'))
after(() => rmSync(directory, { recursive: true }))

/** Random files come from the tests that run queries with them. */
const checks = process.env.ORDERGRAPH_TEST_LONG ? 20 : 3
execFileSync('go', ['test', './e2e/customfields', '-run', 'TestRandomFiles', '-rapid.checks', checks, '-files', directory], { cwd: root })

/** The tests of the published schema. With custom fields, the schema passes them, too. */
const others = ['changes', 'composition', 'introspection', 'lint', 'relay'].map((name) => new URL(`${name}.test.js`, import.meta.url).pathname)

for (const name of readdirSync(directory)) {
  test(`linters, composers, Relay and the clients of the last release take a random file: ${name}`, async () => {
    const file = join(directory, name)
    const server = await start(file)
    try {
      const { _service } = await server.send(JSON.stringify({ query: '{ _service { sdl } }' }))
      const subgraph = join(directory, `subgraph-${name}`)
      writeFileSync(subgraph, _service.sdl)
      const { NODE_TEST_CONTEXT, ...env } = process.env
      const { status, stdout } = spawnSync('node', ['--test', ...others], { env: { ...env, SUBGRAPH: subgraph, BASE_URL: server.address }, encoding: 'utf8' })
      assert.equal(status, 0, `${_service.sdl}\n${stdout}`)
    } finally {
      server.stop()
    }
  })
}
