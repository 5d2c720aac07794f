/** One request to DynamoDB, as the server reports it. */
export interface ExplainRequest {
  accessPattern: string
  operation: string
  /** The index that was read; empty for the table itself. */
  index: string
  key: string
  /** The keys of all records, if the request names several; key has only the first three. */
  keys: string[]
  /** The GraphQL path that needed the data, such as `customer.orders`. */
  path: string
  items: number
  readUnits: number
  writeUnits: number
  durationMs: number
  /** The number of the request's round trip, counted from 1. */
  roundTrip: number | null
}

export interface ExplainTotals {
  requests: number
  roundTrips: number
  readUnits: number
  writeUnits: number
  /** The price of a million operations with these units; null if the server sent none. */
  dollarsPerMillion: number | null
}

export interface Explain {
  requests: ExplainRequest[]
  totals: ExplainTotals
}

/** The requests of one round trip. */
export interface RoundTrip {
  number: number | null
  requests: ExplainRequest[]
}

/**
 * Reads `extensions.explain`. The value crosses the network, so its shape is
 * checked. The result is null if the value is malformed. A field that is missing or
 * has the wrong type gets its zero value.
 */
export function readExplain(extensions: unknown): Explain | null {
  const explain = record(extensions)?.['explain']
  const fields = record(explain)
  const requests = fields?.['requests']
  const totals = record(fields?.['totals'])
  if (!Array.isArray(requests) || !totals) {
    return null
  }
  return {
    requests: requests.map(readRequest),
    totals: {
      requests: number(totals['requests']),
      roundTrips: number(totals['roundTrips']),
      readUnits: number(totals['readUnits']),
      writeUnits: number(totals['writeUnits']),
      dollarsPerMillion:
        typeof totals['dollarsPerMillion'] === 'number' ? totals['dollarsPerMillion'] : null,
    },
  }
}

/** Groups requests by round trip, keeping the server's order inside each. */
export function groupByRoundTrip(requests: ExplainRequest[]): RoundTrip[] {
  const roundTrips = new Map<number | null, ExplainRequest[]>()
  for (const request of requests) {
    const roundTrip = roundTrips.get(request.roundTrip)
    if (roundTrip) {
      roundTrip.push(request)
    } else {
      roundTrips.set(request.roundTrip, [request])
    }
  }
  return [...roundTrips]
    .map(([number, grouped]) => ({ number, requests: grouped }))
    .sort((a, b) => (a.number ?? Infinity) - (b.number ?? Infinity))
}

function readRequest(value: unknown): ExplainRequest {
  const fields = record(value) ?? {}
  const roundTrip = fields['roundTrip']
  return {
    accessPattern: string(fields['accessPattern']),
    operation: string(fields['operation']),
    index: string(fields['index']),
    key: string(fields['key']),
    keys: Array.isArray(fields['keys']) ? fields['keys'].map(string) : [],
    path: string(fields['path']),
    items: number(fields['items']),
    readUnits: number(fields['readUnits']),
    writeUnits: number(fields['writeUnits']),
    durationMs: number(fields['durationMs']),
    roundTrip: typeof roundTrip === 'number' && roundTrip >= 1 ? roundTrip : null,
  }
}

function record(value: unknown): Record<string, unknown> | null {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null
}

function string(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function number(value: unknown): number {
  return typeof value === 'number' ? value : 0
}
