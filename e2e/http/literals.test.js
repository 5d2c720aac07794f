import assert from 'node:assert/strict'
import { test } from 'node:test'

import {
  buildClientSchema, getIntrospectionQuery, getNamedType, getNullableType, GraphQLError, isEnumType, isInputObjectType, isLeafType, isListType, isNonNullType, parse, validate,
} from 'graphql'

const address = process.env.BASE_URL
if (!address) {
  throw new Error('set BASE_URL to the address of a running server, such as http://127.0.0.1:8080')
}

async function send(query) {
  const response = await fetch(new URL('/graphql', address), {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/graphql-response+json' },
    body: JSON.stringify({ query }),
  })
  return { status: response.status, body: await response.json() }
}

// Literals of each scalar. graphql-js knows the rules of the built-in scalars. For the custom
// scalars, it accepts the valid literals of this table only.
const literals = {
  Int: { valid: ['0', '-1', '2147483647', '-2147483648'], invalid: ['2147483648', '-2147483649', '345345345345', '99999999999999999999', '1.0', '1e3', '"1"', 'true', 'ONE', '{}', '{a: 1}'] },
  String: { valid: ['"x"', '""', '"""block"""', '"\\u00e9"'], invalid: ['1', '1.5', 'true', 'x', '{}'] },
  Boolean: { valid: ['true', 'false'], invalid: ['1', '"true"', 'TRUE', '{}'] },
  ID: { valid: ['"x"', '5', '-5', '99999999999999999999', '""'], invalid: ['1.5', '1e3', 'true', 'x', '{}', '{id: 1}'] },
  Date: { valid: ['"2026-02-01"', '"2024-02-29"'], invalid: ['"2023-02-29"', '"2026-2-1"', '"2026-02-01T00:00:00Z"', '""', '20260201', 'true', 'today', '{}'] },
  DateTime: { valid: ['"2026-02-01T09:30:00Z"', '"2026-02-01T09:30:00.123+02:00"'], invalid: ['"2026-02-01"', '"2026-02-30T09:30:00Z"', '"2026-02-01T09:30:00"', '"now"', '1769938200', '{}'] },
  Decimal: { valid: ['"29.99"', '29.99', '30', '"-0.5"', '1234567890123456.789'], invalid: ['"1.0.0"', '"much"', '""', 'true', '"1e400"', '1e400', '99999999999999999999', '{}'] },
  CurrencyCode: { valid: ['"USD"', '"JPY"'], invalid: ['"QQQ"', '"usd"', '"EURO"', '""', '840', '{}'] },
}

async function oracle() {
  const schema = buildClientSchema((await send(getIntrospectionQuery())).body.data)
  for (const name of ['Date', 'DateTime', 'Decimal', 'CurrencyCode']) {
    const text = (node) => ('value' in node ? String(node.value) : node.kind)
    const valid = new Set(literals[name].valid.map((literal) => literal.replaceAll('"', '')))
    schema.getType(name).parseLiteral = (node) => {
      if (!valid.has(text(node))) throw new GraphQLError('invalid')
      return text(node)
    }
  }
  return schema
}

// random returns a reproducible source of random numbers (mulberry32).
function random(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31)
const next = random(seed)
const chance = (p) => next() < p
const pick = (list) => list[Math.floor(next() * list.length)]

// value draws a literal for an input type. Most literals are valid.
function value(type, depth = 0) {
  if (isNonNullType(type)) return chance(0.01) ? 'null' : value(type.ofType, depth)
  if (chance(0.03)) return 'null'
  if (isListType(type)) {
    if (chance(0.1)) return value(type.ofType, depth)
    const list = `[${Array.from({ length: Math.floor(next() * 3) }, () => value(type.ofType, depth + 1)).join(' ')}]`
    return chance(0.02) ? `[${list}]` : list
  }
  if (isEnumType(type)) return chance(0.05) ? pick(['NO_SUCH_VALUE', '"PENDING"', '1', '{}']) : pick(type.getValues()).name
  if (isInputObjectType(type)) {
    if (chance(0.02)) return pick(['"x"', '1', 'X', '[]', '{noSuchField: 1}'])
    const fields = Object.values(type.getFields()).filter((f) => chance(isNonNullType(f.type) ? 0.99 : depth > 3 ? 0 : 0.5))
    return `{${fields.map((f) => `${f.name}: ${value(f.type, depth + 1)}`).join(', ')}}`
  }
  const { valid, invalid } = literals[type.name]
  return chance(0.03) ? `[${pick(valid)}]` : pick(chance(0.06) ? invalid : valid)
}

// draw draws a document with literals in arguments, in defaults of variables, in directives and in
// fragments. @skip excludes each field, so that the server changes nothing.
function draw(schema) {
  const kind = pick(['query', 'mutation'])
  const root = kind === 'query' ? schema.getQueryType() : schema.getMutationType()
  const fields = Object.values(root.getFields()).filter((f) => f.args.length > 0 && f.name !== '_entities')
  const variables = []
  const selections = Array.from({ length: 1 + Math.floor(next() * 3) }, (_, i) => {
    const field = pick(fields)
    const args = field.args.filter((a) => isNonNullType(a.type) || chance(0.5)).map((a) => {
      if (!chance(0.2)) return `${a.name}: ${value(a.type)}`
      variables.push(`$v${variables.length}: ${getNullableType(a.type)} = ${value(a.type)}`)
      return `${a.name}: $v${variables.length - 1}`
    })
    const set = isLeafType(getNamedType(field.type)) ? '' : ' { __typename }'
    const skip = chance(0.02) ? value({ name: 'Boolean' }) : 'true'
    return `f${i}: ${field.name}${args.length > 0 ? `(${args.join(', ')})` : ''} @skip(if: ${skip})${set}`
  })
  const definitions = variables.length > 0 ? `(${variables.join(', ')})` : ''
  return chance(0.5)
    ? `${kind} Q${definitions} { __typename ${selections.join(' ')} }`
    : `${kind} Q${definitions} { __typename ...F } fragment F on ${root.name} { ${selections.join(' ')} }`
}

test(`literals are valid if graphql-js accepts them (SEED=${seed})`, async () => {
  const schema = await oracle()
  const verdicts = { true: 0, false: 0 }
  for (let i = 0; i < 600; i++) {
    const query = draw(schema)
    const errors = validate(schema, parse(query))
    const { status, body } = await send(query)
    const rejected = status === 400 && !('data' in body)
    assert.equal(rejected, errors.length > 0, `${query}\ngraphql-js: ${errors.join('; ')}\nserver: ${status} ${JSON.stringify(body)}`)
    verdicts[rejected]++
  }
  assert.ok(verdicts[true] > 50 && verdicts[false] > 50, `the documents are too similar: ${JSON.stringify(verdicts)}`)
})

test('each literal of each scalar is valid or invalid as in graphql-js', async () => {
  const schema = await oracle()
  const positions = {
    Int: (v) => `{ customers(first: ${v}) @skip(if: true) { __typename } }`,
    String: (v) => `{ customerByEmail(email: ${v}) @skip(if: true) { __typename } }`,
    Boolean: (v) => `{ __typename @include(if: ${v}) }`,
    ID: (v) => `{ customer(id: ${v}) @skip(if: true) { __typename } }`,
    Date: (v) => `{ employees(hired: {from: ${v}}) @skip(if: true) { __typename } }`,
    DateTime: (v) => `{ orders(placed: {from: ${v}}) @skip(if: true) { __typename } }`,
    Decimal: (v) => `mutation { updateProduct(input: {sku: "prod_100", unitPrice: {amount: ${v}}}) @skip(if: true) { __typename } }`,
    CurrencyCode: (v) => `mutation { updateProduct(input: {sku: "prod_100", unitPrice: {amount: "30", currencyCode: ${v}}}) @skip(if: true) { __typename } }`,
  }
  const scalars = Object.values(schema.getTypeMap()).filter((t) => t.parseLiteral && !isEnumType(t) && t.name !== '_Any').map((t) => t.name)
  assert.deepEqual(Object.keys(positions).sort(), scalars.sort())
  for (const [name, position] of Object.entries(positions)) {
    for (const [verdict, values] of Object.entries(literals[name])) {
      for (const v of values) {
        const query = position(v)
        const { status, body } = await send(query)
        assert.equal(validate(schema, parse(query)).length > 0, verdict === 'invalid', query)
        assert.equal(status, verdict === 'invalid' ? 400 : 200, `${query}: ${JSON.stringify(body)}`)
        assert.equal('data' in body, verdict === 'valid', query)
      }
    }
  }
})
