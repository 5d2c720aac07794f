import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
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

/** Whether the environment says where DynamoDB is. */
export const hasDynamoDB = Boolean(process.env.AWS_ENDPOINT_URL_DYNAMODB)

/** Starts a server with a new table in DynamoDB, which holds the sample data. */
export async function startOnDynamoDB() {
  const aws = Object.entries(process.env).filter(([name]) => name.startsWith('AWS_'))
  const environment = { ...Object.fromEntries(aws), ORDERGRAPH_STORE: 'dynamodb', ORDERGRAPH_TABLE: `clients-${randomUUID()}`, ORDERGRAPH_AUTH: 'none' }
  execFileSync(program, ['table', 'create'], { env: environment, stdio: 'pipe' })
  execFileSync(program, ['seed'], { env: environment, stdio: 'pipe' })
  return start(environment)
}
