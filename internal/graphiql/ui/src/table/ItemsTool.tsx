import { useEffect, useRef, useState } from 'react'

import type { Collection, Table } from './model'
import { Problems } from './Problems'
import { problemsOf, type Problem, type Server } from './requests'
import { TextField } from './TextField'

/** The item collection that is read, and the variable's value, or an empty string. */
export interface Choice {
  collection: Collection
  value: string
  /** The choices before this one, to go back to. */
  earlier: Choice[]
  /** Whether a button of the items led here, so that the focus must follow. */
  followed: boolean
}

/** Returns what opens the record that an attribute names. The caller passes its own value. */
type Jump = (attribute: string, value: string) => ((own: string) => void) | null
type Follow = (attribute: string, value: string) => (() => void) | null

/** Reads the real items of a collection through GraphQL, so that permissions apply. */
export function ItemsTool({ server, table, choice, onChoose }: { server: Server; table: Table; choice: Choice | null; onChoose: (choice: Choice) => void }) {
  const jump: Jump = (attribute, value) => {
    const reference = table.references.find((r) => r.attribute === attribute)
    const collection = table.collections.find((c) => c.in === 'table' && c.key === reference?.collection)
    return choice && collection?.read
      ? (own) => {
          const earlier = [...choice.earlier, { ...choice, value: own, followed: true }]
          onChoose({ collection, value, earlier, followed: true })
        }
      : null
  }
  const previous = choice?.earlier.at(-1)
  return (
    <>
      <h2>Which items does the table contain?</h2>
      {choice?.collection.read ? (
        // Another choice starts from the beginning.
        <Items
          key={`${choice.earlier.length} ${choice.collection.in} ${choice.collection.key} ${choice.value}`}
          server={server}
          choice={choice}
          read={choice.collection.read}
          record={recordOf(table, choice.collection)}
          jump={jump}
          onBack={previous ? () => onChoose(previous) : null}
        />
      ) : (
        <p>Choose the key of a card, such as CUSTOMER#…, to read its items.</p>
      )}
    </>
  )
}

/** The name of the base record that a collection lists, also if it contains copies. */
function recordOf(table: Table, { entities: [first] }: Collection): string {
  const entity = table.entities.find(({ name }) => name === first)
  return entity ? entity.of || entity.name : ''
}

function Items({
  server,
  choice,
  read,
  record,
  jump,
  onBack,
}: {
  server: Server
  choice: Choice
  read: NonNullable<Collection['read']>
  /** What the collection lists, such as order. */
  record: string
  jump: Jump
  onBack: (() => void) | null
}) {
  const [value, setValue] = useState(
    // Keys contain an enum's value in lower case.
    read.values.find((one) => one.toLowerCase() === choice.value.toLowerCase()) ?? read.values[0] ?? choice.value,
  )
  const [data, setData] = useState<Record<string, unknown> | null>(null)
  const [problems, setProblems] = useState<Problem[]>([])
  const path = read.connection === '' ? [] : read.connection.split('.')
  const { nodes, pageInfo } = connectionAt(data, path)

  const load = (after: string | null) => {
    server.run(read.document, { ...(read.argument && { [read.argument]: value }), after }).then(
      (result) => {
        const page = result.data ?? {}
        if (after !== null) {
          connectionAt(page, path).nodes.unshift(...nodes)
        }
        setData(page)
        setProblems(result.errors ?? [])
      },
      (reason: unknown) => {
        if (after === null) {
          setData(null)
        }
        setProblems(problemsOf(reason))
      },
    )
  }
  const heading = useRef<HTMLHeadingElement>(null)
  const follow: Follow = (attribute, other) => {
    const go = jump(attribute, other)
    return go && (() => go(value))
  }
  useEffect(() => {
    if (choice.followed) {
      heading.current?.focus()
    }
    if (choice.value !== '' || read.argument === '') {
      load(null)
    }
    // eslint-disable-next-line react-hooks/exhaustive-deps -- once: another choice is another component
  }, [])

  return (
    <>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          load(null)
        }}
      >
        <h3 ref={heading} tabIndex={-1}>
          Item collection <code>{choice.collection.key}</code>
        </h3>
        {read.values.length > 0 && (
          <label>
            {read.variable}
            <select value={value} onChange={({ currentTarget }) => setValue(currentTarget.value)}>
              {read.values.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          </label>
        )}
        {read.values.length === 0 && read.argument !== '' && (
          <TextField label={read.variable} required value={value} onChange={setValue} />
        )}
        <p className="buttons">
          {onBack && (
            <button type="button" onClick={onBack}>
              Back
            </button>
          )}
          <button type="submit" className="primary">
            Read items
          </button>
        </p>
      </form>
      <Problems problems={problems} />
      <div aria-live="polite" className="items">
        {data && isEmpty(data)
          ? problems.length === 0 && <p>No records</p>
          : Object.entries(data ?? {}).map(([name, one]) => (
              <Value key={name} name={path.length === 1 ? record : name} value={one} follow={follow} />
            ))}
        {pageInfo?.hasNextPage && (
          <p className="buttons">
            <button
              type="button"
              onClick={() => load(pageInfo.endCursor)}
            >
              Next page
            </button>
          </p>
        )}
      </div>
    </>
  )
}

interface Connection {
  nodes: unknown[]
  pageInfo?: { hasNextPage: boolean; endCursor: string | null }
}

function connectionAt(data: Record<string, unknown> | null, path: string[]): Connection {
  const found = path.reduce<unknown>((at, name) => (at as Record<string, unknown> | null)?.[name], data)
  return path.length > 0 && found ? (found as Connection) : { nodes: [] }
}

/** Whether a response contains no record. */
function isEmpty(data: Record<string, unknown>): boolean {
  return Object.values(data).every((value) => {
    const list = (value as Partial<Connection> | null)?.nodes ?? value
    return list === null || (Array.isArray(list) && list.length === 0)
  })
}

/** One value of a response. IDs of other records are buttons. */
function Value({ name, value, follow }: { name: string; value: unknown; follow: Follow }) {
  if (value === null) {
    return <span className="none">none</span>
  }
  if (Array.isArray(value)) {
    return (
      <ol>
        {value.map((one: unknown, position) => (
          <li key={position}>
            <Value name={name} value={one} follow={follow} />
          </li>
        ))}
      </ol>
    )
  }
  if (typeof value === 'object') {
    const object = value as Record<string, unknown>
    if ('nodes' in object) {
      return <Value name={name.replace(/s$/, '')} value={object['nodes']} follow={follow} />
    }
    if (typeof object['amount'] === 'string' && typeof object['currencyCode'] === 'string') {
      return `${object['amount']} ${object['currencyCode']}`
    }
    // Values that are missing would hide the others.
    const fields = Object.entries(object).filter(
      ([, one]) => one !== null && !(Array.isArray(one) && one.length === 0),
    )
    const [[field, single] = ['', null]] = fields
    if (fields.length === 1) {
      return <Value name={referenceOf(name, field)} value={single} follow={follow} />
    }
    return (
      <dl>
        {fields.map(([field, one]) => (
          <div key={field}>
            <dt>{field}</dt>
            <dd>
              <Value name={referenceOf(name, field)} value={one} follow={follow} />
            </dd>
          </div>
        ))}
      </dl>
    )
  }
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  const go = follow(name, text)
  return go ? (
    <button type="button" className="reference" onClick={go}>
      {text}
    </button>
  ) : (
    text
  )
}

/** The attribute that contains the ID of an object: `customerId` for `customer { id }`. */
function referenceOf(object: string, field: string): string {
  return field === 'id' ? `${object}Id` : field
}
