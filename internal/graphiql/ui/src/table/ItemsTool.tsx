import { useEffect, useState } from 'react'

import type { Collection, Table } from './model'
import { Problems } from './Problems'
import { problemsOf, type Problem, type Server } from './requests'

/** The item collection that is read, and the variable's value, or an empty string. */
export interface Choice {
  collection: Collection
  value: string
}

type Jump = (attribute: string, value: string) => (() => void) | null

/** Reads the real items of a collection through GraphQL, so that permissions apply. */
export function ItemsTool({ server, table, choice, onChoose }: { server: Server; table: Table; choice: Choice | null; onChoose: (choice: Choice) => void }) {
  const jump: Jump = (attribute, value) => {
    const reference = table.references.find((r) => r.attribute === attribute)
    const collection = table.collections.find((c) => c.in === 'table' && c.key === reference?.collection)
    return collection?.read ? () => { onChoose({ collection, value }) } : null
  }
  return (
    <>
      <h2>Which items does the table contain?</h2>
      {choice?.collection.read ? (
        // Another choice starts from the beginning.
        <Items key={`${choice.collection.in} ${choice.collection.key} ${choice.value}`} server={server} choice={choice} read={choice.collection.read} jump={jump} />
      ) : (
        <p>Choose the key of a card, such as CUSTOMER#…, to read its items.</p>
      )}
    </>
  )
}

function Items({ server, choice, read, jump }: { server: Server; choice: Choice; read: NonNullable<Collection['read']>; jump: Jump }) {
  const [value, setValue] = useState(choice.value)
  const [data, setData] = useState<Record<string, unknown> | null>(null)
  const [problems, setProblems] = useState<Problem[]>([])
  const path = read.connection === '' ? [] : read.connection.split('.')
  const { nodes, pageInfo } = connectionAt(data, path)

  const load = (after: string | null) => {
    const variable = /\$(?!after\b)(\w+)/.exec(read.document)?.[1]
    server.run(read.document, { ...(variable && { [variable]: value }), after }).then(
      (result) => {
        const page = result.data ?? {}
        if (after !== null) {
          connectionAt(page, path).nodes.unshift(...nodes)
        }
        setData(page)
        setProblems(result.errors ?? [])
      },
      (reason: unknown) => {
        setProblems(problemsOf(reason))
      },
    )
  }
  useEffect(() => {
    if (choice.value !== '' || read.variable === '') {
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
        <p>
          Item collection <code>{choice.collection.key}</code>
        </p>
        {read.variable !== '' && (
          <label>
            {read.variable}
            <input
              type="text"
              required
              spellCheck={false}
              value={value}
              onChange={({ currentTarget }) => {
                setValue(currentTarget.value)
              }}
            />
          </label>
        )}
        <p className="buttons">
          <button type="submit" className="primary">
            Read items
          </button>
        </p>
      </form>
      <Problems problems={problems} />
      <div aria-live="polite" className="items">
        {data && Object.entries(data).map(([name, one]) => <Value key={name} name={name} value={one} jump={jump} />)}
        {pageInfo?.hasNextPage && (
          <p className="buttons">
            <button
              type="button"
              onClick={() => {
                load(pageInfo.endCursor)
              }}
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

/** One value of a response. IDs of other records are buttons. */
function Value({ name, value, jump }: { name: string; value: unknown; jump: Jump }) {
  if (value === null) {
    return name === '' ? null : <span className="none">none</span>
  }
  if (Array.isArray(value)) {
    return (
      <ol>
        {value.map((one: unknown, position) => (
          <li key={position}>
            <Value name={name} value={one} jump={jump} />
          </li>
        ))}
      </ol>
    )
  }
  if (typeof value === 'object') {
    const object = value as Record<string, unknown>
    if ('nodes' in object) {
      return <Value name={name.replace(/s$/, '')} value={object['nodes']} jump={jump} />
    }
    return (
      <dl>
        {Object.entries(object).map(([field, one]) => (
          <div key={field}>
            <dt>{field}</dt>
            <dd>
              <Value name={field === 'id' || field === 'sku' ? idField(name, field) : field} value={one} jump={jump} />
            </dd>
          </div>
        ))}
      </dl>
    )
  }
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  const go = jump(name, text)
  return go ? (
    <button type="button" className="reference" onClick={go}>
      {text}
    </button>
  ) : (
    text
  )
}

/** The attribute that contains the ID of an object: `customerId` for `customer { id }`. */
function idField(object: string, field: string): string {
  return field === 'id' ? `${object}Id` : field
}
