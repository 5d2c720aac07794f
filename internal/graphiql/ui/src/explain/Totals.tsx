import { formatDollars, formatNumber } from './format'
import type { ExplainTotals } from './model'

export function Totals({ totals }: { totals: ExplainTotals }) {
  return (
    <dl className="explain-totals" aria-label="Totals">
      <Total label="Requests" value={formatNumber(totals.requests)} />
      <Total label="Round trips" value={formatNumber(totals.roundTrips)} />
      <Total label="Read units" value={formatNumber(totals.readUnits)} />
      <Total label="Write units" value={formatNumber(totals.writeUnits)} />
      {totals.dollarsPerMillion !== null && (
        <Total label="Per million" value={formatDollars(totals.dollarsPerMillion)} />
      )}
    </dl>
  )
}

function Total({ label, value }: { label: string; value: string }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{value}</dd>
    </div>
  )
}
