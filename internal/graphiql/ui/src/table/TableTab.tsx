import './table.css'

import { useEffect, useMemo, useState } from 'react'

import { count } from '../explain/format'
import type { ExplainStore } from '../explain/store'
import { Tabs } from '../Tabs'
import { Canvas } from './Canvas'
import { ItemsTool, type Choice } from './ItemsTool'
import { ListTool } from './ListTool'
import { loadsOf } from './load'
import { LoadTool, rateOf, type Orders } from './LoadTool'
import { valueIn } from './match'
import { idOf, type AccessPattern, type Collection, type Table } from './model'
import { PatternTool } from './PatternTool'
import { Problems } from './Problems'
import { ProposedNote } from './ProposedNote'
import { QueryTool, type Run } from './QueryTool'
import { problemsOf, Server, type Problem } from './requests'
import { TextField } from './TextField'
import { stepsOf, viewOfCollection, viewOfEntities, viewOfLoad, viewOfPattern, viewOfSteps, type View } from './view'

const TOOLS = { query: 'Query', patterns: 'Patterns', load: 'Load', list: 'New list', items: 'Items' }
type Tool = keyof typeof TOOLS

const NOTHING: View = { marks: new Map(), arrows: [] }
/** How long a round trip is shown before the next one, in milliseconds. */
const PAUSE = 1200

/** The table as a picture, with tools that explain its keys and what they cost. */
export function TableTab({ endpoint, explain }: { endpoint: URL; explain: ExplainStore }) {
  const [typed, setTyped] = useState('')
  const [token, setToken] = useState('')
  const server = useMemo(() => new Server(endpoint, token), [endpoint, token])
  const [declared, setDeclared] = useState<Table | null>(null)
  const [problems, setProblems] = useState<Problem[]>([])

  useEffect(() => {
    let outdated = false
    server.table().then(
      (table) => {
        if (!outdated) {
          setDeclared(table)
          setProblems([])
        }
      },
      (reason: unknown) => {
        if (!outdated) {
          setProblems(problemsOf(reason))
        }
      },
    )
    return () => {
      outdated = true
    }
  }, [server])

  return (
    <div className="table-tab">
      <Problems problems={problems} />
      <details className="access" open={problems.length > 0}>
        <summary>Token</summary>
        <form
          onSubmit={(event) => {
            event.preventDefault()
            setToken(typed.trim().replace(/^Bearer /i, ''))
          }}
        >
          <TextField label="Token of a caller with the permission EXPLAIN. The page does not store it." type="password" value={typed} onChange={setTyped} />
          <button type="submit">Use token</button>
        </form>
      </details>
      {declared ? (
        <Tools declared={declared} server={server} explain={explain} />
      ) : (
        problems.length === 0 && <p role="status">Reading the table…</p>
      )}
    </div>
  )
}

function Tools({ declared, server, explain }: { declared: Table; server: Server; explain: ExplainStore }) {
  const [tool, setTool] = useState<Tool>('query')
  const [proposed, setProposed] = useState<Table | null>(null)
  const [run, setRun] = useState<Run | null>(null)
  const [step, setStep] = useState(0)
  const [playing, setPlaying] = useState(false)
  const [pattern, setPattern] = useState<AccessPattern | null>(null)
  const [orders, setOrders] = useState<Orders>({ position: 34, share: 0.01 })
  const [choice, setChoice] = useState<Choice | null>(null)
  const [only, setOnly] = useState(true)
  const table = proposed ?? declared

  const steps = useMemo(() => (run ? stepsOf(table, run.explain.requests) : []), [table, run])
  useEffect(() => {
    const next = steps[steps.findIndex(({ number }) => number === step) + 1]
    if (!playing || !next) {
      return
    }
    const timer = window.setTimeout(() => {
      setStep(next.number)
    }, PAUSE)
    return () => {
      window.clearTimeout(timer)
    }
  }, [playing, step, steps])

  const view = useMemo((): View => {
    switch (tool) {
      case 'query':
        return viewOfSteps(steps, step)
      case 'patterns':
        return pattern ? viewOfPattern(table, pattern) : NOTHING
      case 'load':
        return viewOfLoad(loadsOf(table, rateOf(orders), orders.share))
      case 'list':
        return viewOfEntities(table, table.proposal?.entities ?? [])
      case 'items':
        return choice ? viewOfCollection(idOf(choice.collection)) : NOTHING
    }
  }, [tool, steps, step, table, pattern, orders, choice])

  const show = (next: Run | null) => {
    const still = window.matchMedia('(prefers-reduced-motion: reduce)').matches
    const trips = next ? stepsOf(table, next.explain.requests).map(({ number }) => number) : []
    setRun(next)
    setPlaying(!still)
    setStep((still ? trips.at(-1) : trips[0]) ?? 0)
  }

  const open = (collection: Collection) => {
    // A key that the last run has read is a good first value.
    const keys = steps.flatMap(({ requests }) => requests.flatMap(({ hits }) => hits))
    const key = keys.find((hit) => idOf(hit.collection) === idOf(collection))?.key
    setChoice({ collection, value: (key && valueIn(collection.key, key)) ?? '', earlier: [], followed: false })
    setTool('items')
    document.getElementById('tab-items')?.focus()
  }

  const reset = () => {
    setProposed(null)
    // The button that was pressed disappears.
    document.getElementById(`tab-${tool}`)?.focus()
  }

  const content = {
    query: (
      <QueryTool
        server={server}
        explain={explain}
        run={run}
        steps={steps}
        current={step}
        onRun={show}
        onStep={(number) => {
          setPlaying(false)
          setStep(number)
        }}
      />
    ),
    patterns: <PatternTool table={table} pattern={pattern} onPattern={setPattern} />,
    load: <LoadTool table={table} orders={orders} onOrders={setOrders} onReset={reset} />,
    list: <ListTool server={server} table={table} onTable={setProposed} />,
    items: <ItemsTool server={server} table={table} choice={choice} onChoose={setChoice} />,
  }
  const marked = view.marks.size
  return (
    <div className="columns">
      <div className="tools">
        <Tabs label="Tools" tabs={TOOLS} selected={tool} onSelect={setTool} />
        {(Object.keys(TOOLS) as Tool[]).map((key) => (
          <section key={key} role="tabpanel" id={`panel-${key}`} aria-labelledby={`tab-${key}`} hidden={key !== tool}>
            {content[key]}
          </section>
        ))}
      </div>
      <div className="picture">
        {table.proposal && <ProposedNote onReset={reset} />}
        <p>
          Each card is an item collection: all records with the same partition key. One Query reads one of them. The
          index <code>{table.index}</code> contains records under a second key, so that lists need no scan.{' '}
          {erasOf(table)}
        </p>
        <p className="legend">
          <span className="sample sample-derives">derives from</span>
          <span className="sample sample-index">the same record in the index</span>
          {marked > 0 && (
            <label>
              <input type="checkbox" checked={only} onChange={({ currentTarget: { checked } }) => setOnly(checked)} />
              Only the marked cards ({marked} of {table.collections.length})
            </label>
          )}
        </p>
        <Canvas table={table} view={view} only={only && marked > 0} onOpen={open} />
      </div>
    </div>
  )
}

/** The number of shards now and before. */
function erasOf({ layout: { shards, eras } }: Table): string {
  const now = `Sharded keys have ${count(shards, 'shard')}.`
  const history = eras.map((era) => `${era.shards}${era.from ? ` since ${era.from.slice(0, 16).replace('T', ' ')}` : ' at first'}`)
  return eras.length > 1 ? `${now} Eras: ${history.join(', ')}.` : now
}
