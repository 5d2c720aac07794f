import { useId } from 'react'

import { count, formatMilliseconds, formatNumber } from './format'
import { groupByRoundTrip, type ExplainRequest, type RoundTrip } from './model'

export function RequestTable({ requests }: { requests: ExplainRequest[] }) {
  const roundTrips = groupByRoundTrip(requests)
  const grouped = roundTrips.some((roundTrip) => roundTrip.number !== null)
  const slowest = Math.max(...requests.map((request) => request.durationMs))
  return (
    <table className="explain-requests">
      <caption>Requests to DynamoDB</caption>
      <thead>
        <tr>
          <th scope="col">Request</th>
          <th scope="col">Items</th>
          <th scope="col">
            <abbr title="Read units">Read</abbr>
          </th>
          <th scope="col">
            <abbr title="Write units">Write</abbr>
          </th>
          <th scope="col">Time</th>
        </tr>
      </thead>
      {roundTrips.map((roundTrip) => (
        <tbody key={roundTrip.number ?? 'none'}>
          {grouped && <RoundTripHeading roundTrip={roundTrip} />}
          {roundTrip.requests.map((request, position) => (
            // Two requests of one response can be equal in every field.
            <RequestRow key={position} request={request} slowest={slowest} />
          ))}
        </tbody>
      ))}
    </table>
  )
}

function RoundTripHeading({ roundTrip }: { roundTrip: RoundTrip }) {
  const size = count(roundTrip.requests.length, 'request')
  return (
    <tr className="explain-round-trip">
      <th scope="rowgroup" colSpan={5}>
        {roundTrip.number === null ? 'Unknown round trip: ' : `Round trip ${roundTrip.number}: `}
        <span>{roundTrip.requests.length > 1 ? `${size} at once` : size}</span>
      </th>
    </tr>
  )
}

/** A line of figures and, across the full width, a line for the long texts. */
function RequestRow({ request, slowest }: { request: ExplainRequest; slowest: number }) {
  const id = useId()
  const share = slowest > 0 ? request.durationMs / slowest : 0
  return (
    <>
      <tr>
        <th scope="row" id={id}>
          <span className="explain-pattern">{request.accessPattern}</span> {request.operation}
          {request.index && <span className="explain-index"> on {request.index}</span>}
        </th>
        <td>{formatNumber(request.items)}</td>
        <td>{formatNumber(request.readUnits)}</td>
        <td>{formatNumber(request.writeUnits)}</td>
        <td>
          {formatMilliseconds(request.durationMs)}
          <span className="explain-bar" aria-hidden="true">
            <span style={{ width: `${share * 100}%` }} />
          </span>
        </td>
      </tr>
      <tr className="explain-details">
        <td colSpan={5} headers={id}>
          <code className="explain-key">{request.key}</code>
          {request.path && (
            <span className="explain-path">
              for <code>{request.path}</code>
            </span>
          )}
        </td>
      </tr>
    </>
  )
}
