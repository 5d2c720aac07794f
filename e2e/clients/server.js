import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

/** The path of the server. */
export const program = process.env.ORDERGRAPH
if (!program) {
  throw new Error('set ORDERGRAPH to the path of the built server')
}

/** Starts a server with the embedded store and variables of its own. */
export async function start(environment = {}) {
  const child = spawn(program, ['-addr', '127.0.0.1:0'], { env: { ORDERGRAPH_STORE: 'embedded', ...environment }, stdio: ['ignore', 'pipe', 'inherit'] })
  let endpoint
  for await (const line of createInterface({ input: child.stdout })) {
    endpoint = line.match(/^ *GraphQL +(\S+)$/)?.[1] ?? endpoint
    if (endpoint) {
      break
    }
  }
  assert.ok(endpoint, 'the server starts')
  return { child, endpoint }
}
