import { formatNumber } from './format'
import type { ExplainTotals } from './model'

export function Totals({ totals }: { totals: ExplainTotals }) {
  return (
    <dl className="explain-totals" aria-label="Totals">
      <Total label="Requests" value={totals.requests} />
      <Total label="Round trips" value={totals.roundTrips} />
      <Total label="Read units" value={totals.readUnits} />
      <Total label="Write units" value={totals.writeUnits} />
    </dl>
  )
}

function Total({ label, value }: { label: string; value: number }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{formatNumber(value)}</dd>
    </div>
  )
}
