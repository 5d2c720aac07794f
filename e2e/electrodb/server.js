import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { createInterface } from 'node:readline'

const program = process.env.ORDERGRAPH
if (!program) {
  throw new Error('set ORDERGRAPH to the path of the built server')
}

/** Starts a command of the program. Returns the URL that it prints after a word, and a function that stops it. */
async function start(word, args, env) {
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  for await (const line of createInterface({ input: child.stdout })) {
    const url = line.match(new RegExp(`^ *${word} +(\\S+)$`))?.[1]
    if (url) {
      return { url, stop: () => child.kill() }
    }
  }
  assert.fail(`${args.join(' ')} does not start`)
}

/** The engines: the embedded store, and DynamoDB Local if the environment says where it is. */
export const engines = {
  'embedded store': async () => {
    const { url, stop } = await start('Endpoint', ['local', '-addr', '127.0.0.1:0'], {})
    return { aws: { AWS_ENDPOINT_URL_DYNAMODB: url, AWS_REGION: 'local', AWS_ACCESS_KEY_ID: 'any', AWS_SECRET_ACCESS_KEY: 'any' }, stop }
  },
}
if (process.env.AWS_ENDPOINT_URL_DYNAMODB) {
  engines['DynamoDB Local'] = async () => ({ aws: Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith('AWS_'))), stop() {} })
}

/** Creates a table with the sample data, and starts a server. */
export async function serve(aws, identifiers) {
  const table = `electrodb-${randomUUID()}`
  const env = { ...aws, ORDERGRAPH_STORE: 'dynamodb', ORDERGRAPH_TABLE: table, ORDERGRAPH_AUTH: 'none', ORDERGRAPH_ELECTRODB: identifiers }
  execFileSync(program, ['table', 'create'], { env, stdio: 'pipe' })
  execFileSync(program, ['seed'], { env, stdio: 'pipe' })
  const { url, stop } = await start('GraphQL', ['-addr', '127.0.0.1:0'], env)
  return {
    table,
    stop,
    /** Sends an operation. It must have no errors and no user errors. */
    async send(query, variables) {
      const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ query, variables }) })
      const { data, errors } = await response.json()
      assert.equal(errors, undefined, JSON.stringify(errors))
      for (const payload of Object.values(data)) {
        assert.deepEqual(payload?.userErrors ?? [], [])
      }
      return data
    },
    /** Runs a command, and returns its exit status and output. */
    run(...args) {
      const { status, stdout, stderr } = spawnSync(program, args, { env, encoding: 'utf8' })
      return { status, output: stdout + stderr }
    },
  }
}
