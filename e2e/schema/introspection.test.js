import assert from 'node:assert/strict'
import { test } from 'node:test'

import { buildClientSchema, getIntrospectionQuery, isIntrospectionType, printType, validateSchema } from 'graphql'

import { build, published } from './schema.js'

const address = process.env.BASE_URL
if (!address) {
  throw new Error('set BASE_URL to the address of a running server, such as http://127.0.0.1:8080')
}

async function ask(query) {
  const response = await fetch(new URL('/graphql', address), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  })
  const { data, errors } = await response.json()
  assert.equal(errors, undefined)
  return data
}

test('the server tells the schema that is published, to people and to composers', async () => {
  const everything = { descriptions: true, specifiedByUrl: true, directiveIsRepeatable: true, schemaDescription: true, inputValueDeprecation: true, oneOf: true }
  const told = buildClientSchema(await ask(getIntrospectionQuery(everything)))
  assert.deepEqual(validateSchema(told), [])

  const own = build(published)
  const types = (schema) => Object.values(schema.getTypeMap()).filter((type) => !isIntrospectionType(type))
  for (const type of types(own).filter(({ name }) => name !== 'Query')) {
    assert.equal(told.getType(type.name) && printType(told.getType(type.name)), printType(type))
  }
  assert.deepEqual(
    types(told).map(({ name }) => name).filter((name) => !own.getType(name)).sort(),
    ['_Any', '_Entity', '_Service'],
  )
  assert.deepEqual(
    Object.keys(told.getQueryType().getFields()).filter((name) => !own.getQueryType().getFields()[name]).sort(),
    ['_entities', '_service'],
  )
  assert.deepEqual(
    told.getDirectives().map(({ name }) => name).sort(),
    ['deprecated', 'include', 'oneOf', 'skip', 'specifiedBy'],
  )
  assert.equal(told.description, own.description)

  assert.equal((await ask('{ _service { sdl } }'))._service.sdl, published)
})
