import { createHmac, timingSafeEqual } from 'node:crypto'
import { EventBridgeClient, PutEventsCommand } from '@aws-sdk/client-eventbridge'
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'

const tolerance = 300 // seconds

/** Handles a request to a Lambda function URL. It puts the event of a webhook on the EventBridge bus EVENT_BUS. */
export const toEventBridge = receive(async (event, text) => {
  const entry = { EventBusName: process.env.EVENT_BUS, Source: 'ordergraph', DetailType: event.type, Time: new Date(event.time), Detail: text }
  const { FailedEntryCount, Entries } = await new EventBridgeClient().send(new PutEventsCommand({ Entries: [entry] }))
  if (FailedEntryCount) throw new Error(Entries[0].ErrorMessage)
})

/** Sends the event to the SQS FIFO queue QUEUE_URL. The queue keeps the order of the events of each order, and removes repetitions. */
export const toQueue = receive((event, text) =>
  new SQSClient().send(new SendMessageCommand({ QueueUrl: process.env.QUEUE_URL, MessageBody: text, MessageGroupId: event.subject, MessageDeduplicationId: event.id })))

/** Returns a handler that forwards signed events. If forward fails, Lambda answers 502, and Ordergraph sends the event again. */
function receive(forward) {
  return async ({ headers, body, isBase64Encoded }) => {
    const text = isBase64Encoded ? Buffer.from(body, 'base64').toString() : body
    if (!isSigned(headers, text)) return { statusCode: 401 }
    await forward(JSON.parse(text), text)
    return { statusCode: 204 }
  }
}

/** Whether a request has a valid signature of Standard Webhooks. */
function isSigned({ 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signatures = '' }, text) {
  if (!(Math.abs(Date.now() / 1000 - Number(at)) <= tolerance)) return false
  const key = Buffer.from(process.env.WEBHOOK_SECRET.replace('whsec_', ''), 'base64')
  const want = createHmac('sha256', key).update(`${id}.${at}.${text}`).digest()
  return signatures.split(' ').some((signature) => {
    const given = Buffer.from(signature.replace('v1,', ''), 'base64')
    return given.length === want.length && timingSafeEqual(given, want)
  })
}
