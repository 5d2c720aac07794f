import './explain.css'

import { useId, useSyncExternalStore } from 'react'

import { RequestTable } from './RequestTable'
import type { ExplainStore, LastRun } from './store'
import { Totals } from './Totals'

export function ExplainPanel({ store }: { store: ExplainStore }) {
  const { enabled, last } = useSyncExternalStore(store.subscribe, store.snapshot)
  const titleId = useId()
  return (
    <section className="explain" aria-labelledby={titleId}>
      <header className="explain-header">
        <h2 id={titleId}>Explain</h2>
        <label className="explain-switch">
          <input
            type="checkbox"
            role="switch"
            checked={enabled}
            onChange={(event) => {
              store.setEnabled(event.currentTarget.checked)
            }}
          />
          Explain queries
        </label>
      </header>
      <div aria-live="polite">
        <LastRunView last={last} enabled={enabled} />
      </div>
    </section>
  )
}

function LastRunView({ last, enabled }: { last: LastRun; enabled: boolean }) {
  switch (last.outcome) {
    case 'none':
      return (
        <p className="explain-note">
          {enabled
            ? 'Run a query to see which requests it makes to DynamoDB.'
            : 'Explain is off. Switch it on and run a query to see which requests it makes to DynamoDB.'}
        </p>
      )
    case 'failed':
      return (
        <>
          <Operation name={last.operation} />
          <p className="explain-note">
            The request had no GraphQL response, so there is nothing to explain.
          </p>
        </>
      )
    case 'unexplained':
      return (
        <>
          <Operation name={last.operation} />
          <p className="explain-note">
            {last.requested
              ? 'The response contains no explain output.'
              : 'This query ran with explain off.'}
          </p>
        </>
      )
    case 'explained':
      return (
        <>
          <Operation name={last.operation} />
          <Totals totals={last.explain.totals} />
          {last.explain.requests.length > 0 ? (
            <RequestTable requests={last.explain.requests} />
          ) : (
            <p className="explain-note">This query made no requests to DynamoDB.</p>
          )}
        </>
      )
  }
}

function Operation({ name }: { name: string | null }) {
  return (
    <p className="explain-operation">
      Last run: {name === null ? 'unnamed operation' : <code>{name}</code>}
    </p>
  )
}
