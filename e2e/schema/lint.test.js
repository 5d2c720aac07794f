import assert from 'node:assert/strict'
import { test } from 'node:test'

import { ESLint } from 'eslint'

import { schemaFiles } from './schema.js'

const linter = new ESLint({ cwd: '/', overrideConfigFile: new URL('eslint.config.js', import.meta.url).pathname })

const complaints = (results) =>
  results.flatMap(({ filePath, messages }) => messages.map((m) => `${filePath}:${m.line}: ${m.message} (${m.ruleId})`))

test('the schema keeps the rules', async () => {
  const results = await linter.lintFiles(schemaFiles)
  assert.equal(results.length, schemaFiles.length, `${results.length} files were read`)
  assert.deepEqual(complaints(results), [])
})

test('the rules are in force', async () => {
  const text = `type ThingConnection { edges: [Thing!]! }
type Thing { Name: String }
extend type Query { getThings(first: Int): ThingConnection }`
  const rules = (await linter.lintText(text, { filePath: schemaFiles[0] })).flatMap(({ messages }) => messages.map((m) => m.ruleId))
  for (const name of ['relay-connection-types', 'relay-edge-types', 'relay-arguments', 'require-description', 'naming-convention', 'no-unreachable-types']) {
    assert.ok(rules.includes(`@graphql-eslint/${name}`), `${name} finds nothing wrong; those that do are ${[...new Set(rules)].join(', ')}`)
  }
})
