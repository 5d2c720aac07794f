import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { after, test } from 'node:test'
import { Webhook } from 'standardwebhooks'

const secret = 'whsec_' + Buffer.alloc(24, 7).toString('base64')
const event = { specversion: '1.0', id: '01HVNR4Q3R0000000000000009', source: 'https://shop.example', type: 'order.confirmed', subject: '01HVNR4Q3R0000000000000002', time: '2026-11-29T12:00:00.000Z', data: { event: { note: 'für Ann' } } }
const text = JSON.stringify(event)

// A local server stands in for EventBridge and SQS.
const received = []
let answer
const server = createServer(async (request, response) => {
  const body = JSON.parse(Buffer.concat(await request.toArray()))
  received.push({ action: request.headers['x-amz-target'], body })
  response.setHeader('content-type', 'application/x-amz-json-1.0').end(JSON.stringify(answer))
}).listen(0, '127.0.0.1')
await once(server, 'listening')
after(() => server.close())
Object.assign(process.env, {
  AWS_ENDPOINT_URL: `http://127.0.0.1:${server.address().port}`, AWS_REGION: 'eu-central-1', AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test',
  EVENT_BUS: 'orders', QUEUE_URL: `http://127.0.0.1:${server.address().port}/1/orders.fifo`, WEBHOOK_SECRET: secret,
})
const { toEventBridge, toQueue } = await import('./samples/aws.mjs')

/** A request to a function URL, signed as by the reference library. */
function request({ at = new Date(), key = secret, body = text, encoded = false } = {}) {
  const signature = new Webhook(key).sign(event.id, at, text)
  return {
    headers: { 'webhook-id': event.id, 'webhook-timestamp': String(Math.floor(at / 1000)), 'webhook-signature': `v1,bm90aGluZw== ${signature}` },
    body: encoded ? Buffer.from(body).toString('base64') : body, isBase64Encoded: encoded,
  }
}

test('forwards a webhook to EventBridge', async () => {
  for (const encoded of [false, true]) {
    answer = { FailedEntryCount: 0, Entries: [{ EventId: '1' }] }
    assert.deepEqual(await toEventBridge(request({ encoded })), { statusCode: 204 })
    const { action, body } = received.pop()
    assert.equal(action, 'AWSEvents.PutEvents')
    const [{ Time, ...entry }] = body.Entries
    assert.deepEqual(entry, { EventBusName: 'orders', Source: 'ordergraph', DetailType: 'order.confirmed', Detail: text })
    assert.equal(new Date(Time * 1000).toISOString(), event.time)
  }
  answer = { FailedEntryCount: 1, Entries: [{ ErrorCode: 'InternalFailure', ErrorMessage: 'try again' }] }
  await assert.rejects(toEventBridge(request()), /try again/)
})

test('forwards a webhook to a FIFO queue', async () => {
  received.length = 0
  answer = { MessageId: '1', MD5OfMessageBody: createHash('md5').update(text).digest('hex') }
  assert.deepEqual(await toQueue(request()), { statusCode: 204 })
  const [{ action, body }] = received
  assert.equal(action, 'AmazonSQS.SendMessage')
  assert.deepEqual(body, { QueueUrl: process.env.QUEUE_URL, MessageBody: text, MessageGroupId: event.subject, MessageDeduplicationId: event.id })
})

test('forwards nothing without a valid signature', async () => {
  received.length = 0
  const minute = 60_000
  const refused = {
    changed: request({ body: text.replace('confirmed', 'cancelled') }),
    'another secret': request({ key: 'whsec_' + Buffer.alloc(24, 8).toString('base64') }),
    old: request({ at: new Date(Date.now() - 6 * minute) }),
    early: request({ at: new Date(Date.now() + 6 * minute) }),
    unsigned: { headers: {}, body: text },
  }
  for (const [name, r] of Object.entries(refused)) {
    assert.deepEqual(await toEventBridge(r), { statusCode: 401 }, name)
    assert.deepEqual(await toQueue(r), { statusCode: 401 }, name)
  }
  assert.equal(received.length, 0)
})
