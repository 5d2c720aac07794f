import { useState } from 'react'

import { count, formatNumber } from '../explain/format'
import { exampleExtension } from './examples'
import { formatMoney, listOf } from './format'
import type { Proposal, Table } from './model'
import { Problems } from './Problems'
import { problemsOf, type Problem, type Server } from './requests'
import { TextField } from './TextField'

/** Shows what a schema extension would add to the table, before anything is written. */
export function ListTool({ server, table, onTable }: { server: Server; table: Table; onTable: (table: Table | null) => void }) {
  const [text, setText] = useState(exampleExtension)
  const [dragged, setDragged] = useState(false)
  const [problems, setProblems] = useState<Problem[]>([])

  const propose = async (extension: string) => {
    setProblems([])
    onTable(null)
    try {
      onTable(await server.table(extension))
    } catch (reason) {
      setProblems(problemsOf(reason))
    }
  }
  const read = async (file: File | undefined) => {
    const content = await file?.text()
    if (content !== undefined) {
      setText(content)
      await propose(content)
    }
  }

  return (
    <>
      <h2>What would a new list cost?</h2>
      <p>
        A list is a query such as <code>ordersByChannel</code>. Each listed record gets a copy under the list&apos;s own
        key in {table.index}. Nothing is written to the table here.
      </p>
      <form
        data-dragged={dragged}
        onDragOver={(event) => {
          event.preventDefault()
          setDragged(true)
        }}
        onDragLeave={() => setDragged(false)}
        onDrop={(event) => {
          event.preventDefault()
          setDragged(false)
          void read(event.dataTransfer.files[0])
        }}
        onSubmit={(event) => {
          event.preventDefault()
          void propose(text)
        }}
      >
        <TextField label="Schema extension" rows={6} value={text} onChange={setText} />
        <label>
          Or choose a file, or drop one here
          <input
            type="file"
            accept=".graphqls,.graphql,text/plain"
            onChange={({ currentTarget: { files } }) => void read(files?.[0])}
          />
        </label>
        <p className="buttons">
          <button type="submit" className="primary">
            Show the plan and the price
          </button>
          {table.proposal && (
            <button
              type="button"
              onClick={() => onTable(null)}
            >
              Back to the table as it is
            </button>
          )}
        </p>
      </form>
      <Problems problems={problems} />
      <div aria-live="polite">{table.proposal && <Plan table={table} proposal={table.proposal} />}</div>
    </>
  )
}

function Plan({ table, proposal }: { table: Table; proposal: Proposal }) {
  const { entities, removed, queries, writeUnitsPerOrder, plan } = proposal
  const dollars = writeUnitsPerOrder * table.prices.writeDollarsPerMillion
  const others = entities.filter((entity) => !mutationsOf(table, entity).includes('placeOrder'))
  return (
    <>
      <p>
        <b>{entities.length === 0 ? 'No new records.' : `New records: ${entities.join(', ')}.`}</b>{' '}
        {writeUnitsPerOrder === 0
          ? 'Orders write nothing more.'
          : `Each order writes ${count(writeUnitsPerOrder, 'more write unit')}, counted over its mutations from placeOrder to deliverOrder. A million orders cost ${formatMoney(dollars)} more.`}
        {removed.length > 0 && ` The file lacks lists that the table has: ${removed.join(', ')}.`}
      </p>
      {others.length > 0 && (
        <ul>
          {others.map((entity) => (
            <li key={entity}>
              {/* The record is deleted with the value, so not every mutation writes one. */}
              {listOf(mutationsOf(table, entity))} can each write 1 more record: {entity}.
            </li>
          ))}
        </ul>
      )}
      <ul>
        {queries.map(({ field, requests, roundTrips, readUnits, maxReadUnits, dollarsPerMillion }) => (
          <li key={field}>
            <code>{field}</code>: {count(requests, 'request')} in {count(roundTrips, 'round trip')},{' '}
            {count(readUnits, 'read unit')} (at most {formatNumber(maxReadUnits)}), {formatMoney(dollarsPerMillion)} per
            million.
          </li>
        ))}
        {plan.map(({ derivation, records, writeUnits, dollars, command }) => (
          <li key={derivation}>
            To fill {derivation} once:{' '}
            {records === null ? 'as many records as the table has' : count(records, 'record')}
            {writeUnits !== null && `, ${count(writeUnits, 'write unit')}`}
            {dollars !== null && `, ${formatMoney(dollars)}`}. Run <code>{command}</code>
          </li>
        ))}
      </ul>
    </>
  )
}

/** The mutations that write the records of an entity. */
function mutationsOf(table: Table, entity: string): string[] {
  return table.writePatterns
    .filter(({ entities, optionalEntities }) => entities.includes(entity) || optionalEntities.includes(entity))
    .flatMap(({ fields }) => fields.map((field) => field.replace('Mutation.', '')))
}
