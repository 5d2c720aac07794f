// The audits of GraphQL over HTTP that the specification's authors wrote (npm graphql-http), all of them: what it says MUST, SHOULD and MAY.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { serverAudits } from 'graphql-http'

const url = new URL('/graphql', process.env.BASE_URL ?? 'http://127.0.0.1:8080').href

const audits = serverAudits({ url })

test('there are 61 audits', () => {
  assert.equal(audits.length, 61)
})

for (const audit of audits) {
  test(`${audit.id} ${audit.name}`, async () => {
    const result = await audit.fn()
    // A warning (SHOULD) and a notice (MAY) are failures here.
    assert.equal(result.status, 'ok', result.reason)
  })
}
