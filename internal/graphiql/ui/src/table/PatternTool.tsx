import { useRef, useState, type KeyboardEvent } from 'react'

import type { AccessPattern, Table } from './model'
import { TextField } from './TextField'

/** The list of access patterns. Hovering or moving to one shows its request. */
export function PatternTool({
  table,
  pattern,
  onPattern,
}: {
  table: Table
  pattern: AccessPattern | null
  onPattern: (pattern: AccessPattern) => void
}) {
  const [words, setWords] = useState('')
  const list = useRef<HTMLUListElement>(null)
  const found = table.accessPatterns.filter(({ id, fields, description }) =>
    `${id} ${fields.join(' ')} ${description}`.toLowerCase().includes(words.toLowerCase()),
  )
  const at = found.findIndex(({ id }) => id === pattern?.id)

  const move = (event: KeyboardEvent) => {
    const last = found.length - 1
    const target = { ArrowDown: Math.min(at + 1, last), ArrowUp: Math.max(at - 1, 0), Home: 0, End: last }[event.key]
    const next = target === undefined ? undefined : found[target]
    if (next) {
      event.preventDefault()
      onPattern(next)
      document.getElementById(`pattern-${next.id}`)?.scrollIntoView({ block: 'nearest' })
    }
  }

  return (
    <>
      <h2>Which request does a field need?</h2>
      <p>Each field reads with one of these access patterns, and none of them scans the table.</p>
      <TextField label="Find a field" type="search" value={words} placeholder="ordersByStatus" onChange={setWords} />
      <ul
        ref={list}
        role="listbox"
        aria-label="Access patterns"
        aria-activedescendant={at >= 0 && pattern ? `pattern-${pattern.id}` : undefined}
        className="patterns"
        tabIndex={0}
        onKeyDown={move}
        onFocus={() => {
          const first = found[0]
          if (at < 0 && first) {
            onPattern(first)
          }
        }}
      >
        {found.map((one) => (
          <li
            key={one.id}
            id={`pattern-${one.id}`}
            role="option"
            aria-selected={one.id === pattern?.id}
            onMouseEnter={() => onPattern(one)}
          >
            <b>{one.id}</b> {one.fields.join(', ')}
          </li>
        ))}
      </ul>
      <section aria-live="polite" aria-label="Access pattern">
        {pattern && (
          <>
            <p>
              <b>{pattern.id}</b> {pattern.description}
            </p>
            <dl>
              <dt>Key condition</dt>
              <dd>
                {pattern.operation}
                {pattern.perShard && `, once per shard (now ${table.layout.shards}),`}{' '}
                {pattern.index ? `on the index ${pattern.index}` : 'on the table'}:{' '}
                <code>
                  {pattern.pk} {pattern.sk}
                </code>
                {pattern.descending && ', descending'}
              </dd>
              <dt>Used by</dt>
              <dd>{pattern.fields.join(', ')}</dd>
              <dt>Request to DynamoDB</dt>
              <dd>
                <pre tabIndex={0}>{JSON.stringify(pattern.request, null, 2)}</pre>
              </dd>
            </dl>
          </>
        )}
      </section>
    </>
  )
}
