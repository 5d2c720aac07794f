import { useId } from 'react'

import { count, formatMilliseconds, formatNumber } from './format'
import { groupByWave, type ExplainRequest, type Wave } from './model'

export function RequestTable({ requests }: { requests: ExplainRequest[] }) {
  const waves = groupByWave(requests)
  const grouped = waves.some((wave) => wave.number !== null)
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
      {waves.map((wave) => (
        <tbody key={wave.number ?? 'none'}>
          {grouped && <WaveHeading wave={wave} />}
          {wave.requests.map((request, position) => (
            // Two requests of one response can be equal in every field.
            <RequestRow key={position} request={request} slowest={slowest} />
          ))}
        </tbody>
      ))}
    </table>
  )
}

function WaveHeading({ wave }: { wave: Wave }) {
  const size = count(wave.requests.length, 'request')
  return (
    <tr className="explain-wave">
      <th scope="rowgroup" colSpan={5}>
        {wave.number === null ? 'Unknown round trip: ' : `Round trip ${wave.number}: `}
        <span>{wave.requests.length > 1 ? `${size} at once` : size}</span>
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
