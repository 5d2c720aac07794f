import { useState, useSyncExternalStore } from 'react'

import { count, formatMilliseconds, formatNumber } from '../explain/format'
import { readExplain, type Explain } from '../explain/model'
import type { ExplainStore } from '../explain/store'
import { examples } from './examples'
import { formatMoney } from './format'
import { Problems } from './Problems'
import { problemsOf, type Problem, type Result, type Server } from './requests'
import { TextField } from './TextField'
import type { Step } from './view'

export interface Run {
  name: string
  explain: Explain
}

/** Runs an operation and tells which keys it read, one round trip after another. */
export function QueryTool({
  server,
  explain,
  run,
  steps,
  current,
  onRun,
  onStep,
}: {
  server: Server
  explain: ExplainStore
  run: Run | null
  steps: Step[]
  current: number
  onRun: (run: Run | null) => void
  onStep: (step: number) => void
}) {
  const [example, setExample] = useState(0)
  const [query, setQuery] = useState(examples[0]?.query ?? '')
  const [variables, setVariables] = useState('')
  const [result, setResult] = useState<Result | null>(null)
  const [problems, setProblems] = useState<Problem[]>([])
  const { last } = useSyncExternalStore(explain.subscribe, explain.snapshot)

  const execute = async () => {
    onRun(null)
    setResult(null)
    setProblems([])
    try {
      const values: unknown = variables.trim() === '' ? {} : JSON.parse(variables)
      const answer = await server.run(query, values, true)
      const read = readExplain(answer.extensions)
      setResult(answer)
      setProblems([
        ...(answer.errors ?? []),
        ...(read ? [] : [{ message: 'The response contains no explain output. It needs the permission EXPLAIN.' }]),
      ])
      if (read) {
        onRun({ name: 'this query', explain: read })
      }
    } catch (reason) {
      setProblems(reason instanceof SyntaxError ? [{ message: `The variables are not JSON: ${reason.message}` }] : problemsOf(reason))
    }
  }

  return (
    <>
      <h2>Which keys does a query read?</h2>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void execute()
        }}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
            event.preventDefault()
            void execute()
          }
        }}
      >
        <label>
          Example
          <select
            value={example}
            onChange={({ currentTarget: { value } }) => {
              const chosen = examples[Number(value)]
              setExample(Number(value))
              setQuery(chosen?.query ?? '')
              setVariables(chosen?.variables ?? '')
              setResult(null)
              setProblems([])
              onRun(null)
            }}
          >
            {examples.map(({ title }, position) => (
              <option key={title} value={position}>
                {title}
              </option>
            ))}
          </select>
        </label>
        <TextField label="Query" rows={Math.min(14, query.split('\n').length + 1)} value={query} onChange={setQuery} />
        <TextField label="Variables" rows={1} placeholder='{"id": "cust_01"}' value={variables} onChange={setVariables} />
        <p className="buttons">
          <button type="submit" className="primary">
            Run
          </button>
          {last.outcome === 'explained' && (
            <button
              type="button"
              onClick={() => {
                setResult(null)
                setProblems([])
                onRun({ name: last.operation ?? 'an unnamed operation', explain: last.explain })
              }}
            >
              Show the last run in GraphiQL
            </button>
          )}
        </p>
      </form>
      <Problems problems={problems} />
      <div aria-live="polite">{run && <Report run={run} steps={steps} current={current} onStep={onStep} />}</div>
      {result && (
        <details>
          <summary>Response</summary>
          {/* A keyboard must be able to scroll it. */}
          <pre tabIndex={0}>{JSON.stringify(result.data, null, 2)}</pre>
        </details>
      )}
    </>
  )
}

function Report({ run, steps, current, onStep }: { run: Run; steps: Step[]; current: number; onStep: (step: number) => void }) {
  const { requests, roundTrips, readUnits, writeUnits, dollarsPerMillion } = run.explain.totals
  const waited = steps.reduce((sum, { durationMs }) => sum + durationMs, 0)
  return (
    <>
      <p>
        <b>
          {count(requests, 'request')} in {count(roundTrips, 'round trip')}
        </b>{' '}
        for {run.name}: {count(readUnits, 'read unit')}
        {writeUnits > 0 && `, ${count(writeUnits, 'write unit')}`}, {formatMilliseconds(waited)} in DynamoDB
        {dollarsPerMillion !== null && `. A million of them cost ${formatMoney(dollarsPerMillion)}`}.
      </p>
      <ol className="steps">
        {steps.map((step) => (
          <li key={step.number} data-current={step.number === current}>
            <button
              type="button"
              aria-pressed={step.number === current}
              onClick={() => onStep(step.number)}
            >
              <b>{step.number}</b> Round trip {step.number}
            </button>
            <p>
              {step.sentence} {step.reason?.text}
            </p>
            <ul>
              {step.requests.map(({ request }, position) => (
                <li key={position}>
                  {request.accessPattern} {request.operation} <code>{request.key}</code>
                  {request.index && ` in ${request.index}`} for <code>{request.path}</code>:{' '}
                  {count(request.items, 'item')}, {count(request.readUnits, 'read unit')}
                  {request.writeUnits > 0 && `, ${formatNumber(request.writeUnits)} write units`},{' '}
                  {formatMilliseconds(request.durationMs)}
                </li>
              ))}
            </ul>
          </li>
        ))}
      </ol>
    </>
  )
}
