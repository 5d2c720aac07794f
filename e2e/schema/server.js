import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

/** Starts a server with the custom fields of a file. Returns its address, and functions to send a body and to stop it. */
export async function start(file) {
  assert.ok(process.env.ORDERGRAPH, 'set ORDERGRAPH to the path of the built server')
  const child = spawn(process.env.ORDERGRAPH, ['-addr', '127.0.0.1:0', '-schema', file], { env: { ORDERGRAPH_STORE: 'embedded' }, stdio: ['ignore', 'pipe', 'inherit'] })
  let endpoint
  for await (const line of createInterface({ input: child.stdout })) {
    endpoint = line.match(/^ *GraphQL +(\S+)$/)?.[1]
    if (endpoint) {
      break
    }
  }
  assert.ok(endpoint, 'the server starts')
  return {
    address: new URL('/', endpoint).href,
    async send(body) {
      const response = await fetch(endpoint, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
      const { data, errors } = await response.json()
      assert.equal(errors, undefined, JSON.stringify(errors))
      return data
    },
    stop: () => child.kill(),
  }
}
