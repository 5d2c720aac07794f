import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changes } from './changes.js'
import { published, released } from './schema.js'

test('nothing breaks the clients of the last release', async (t) => {
  const { breaking, dangerous } = await changes(released, published)
  for (const change of dangerous) {
    t.diagnostic(`dangerous: ${change}`)
  }
  assert.deepEqual(breaking, [], 'breaking changes since the last release: deprecate instead, or see CONTRIBUTING.md')
})

/** The published schema with one thing changed. */
function edited(from, to) {
  assert.equal(published.split(from).length, 2, `the schema contains this text once: ${from}`)
  return published.replace(from, to)
}

const order = 'type Order @key(fields: "id") @access(permission: READ_ORDER) {\n  "The order\'s ID. It is a ULID, so IDs sort by the time at which the orders were placed."\n  id: ID!'

for (const [what, from, to, message] of [
  ['a field that is gone', '  "The time at which the customer was created."\n  createdAt: DateTime!\n', '', "Field 'createdAt' was removed from object type 'Customer'"],
  ['a field that may be null', '  hasNextPage: Boolean!', '  hasNextPage: Boolean', "Field 'PageInfo.hasNextPage' changed type from 'Boolean!' to 'Boolean'"],
  ['a field of another type', '  currencyCode: CurrencyCode!\n}\n', '  currencyCode: String!\n}\n', "Field 'Money.currencyCode' changed type from 'CurrencyCode!' to 'String!'"],
  ['an argument that has to be given', '    email: String!\n  ): Customer', '    email: String!\n    country: String!\n  ): Customer', "Argument 'country: String!' added to field 'Query.customerByEmail'"],
  ['an enum value that is gone', '  """\n  The order was imported from another system, or a repair added this event to correct the timeline.\n  The field `to` contains the status of the order.\n  """\n  IMPORTED\n', '', "Enum value 'IMPORTED' was removed from enum 'OrderEventType'"],
  ['an interface that is gone', 'type NotFound implements UserError', 'type NotFound', "'NotFound' object type no longer implements 'UserError' interface"],
  ['a key that is gone', 'type Product @key(fields: "sku")', 'type Product', "Directive 'key' was removed from object 'Product'"],
  ['another key', order, order.replace('fields: "id"', 'fields: "version"'), "Argument 'fields' was removed from '@key'"],
  ['a value that others may not have any more', 'type PageInfo @shareable', 'type PageInfo', "Directive 'shareable' was removed from object 'PageInfo'"],
]) {
  test(`${what} is a break: ${message}`, async () => {
    const { breaking } = await changes(published, edited(from, to))
    assert.deepEqual(breaking, [message])
  })
}

test('a new or deprecated field is no break', async () => {
  const more = edited('  "The time at which the customer was created."\n', '  "The start."\n  since: DateTime @deprecated(reason: "for the test")\n  "The time at which the customer was created."\n')
  assert.deepEqual(await changes(published, more), { breaking: [], dangerous: [] })
})

test('an enum value that is new is dangerous', async () => {
  const more = edited('  IMPORTED\n', '  IMPORTED\n  SPLIT\n')
  assert.deepEqual(await changes(published, more), {
    breaking: [],
    dangerous: ["Enum value 'SPLIT' was added to enum 'OrderEventType'"],
  })
})
