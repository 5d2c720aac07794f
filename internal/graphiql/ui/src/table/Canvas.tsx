import { useEffect, useRef, useState, type CSSProperties } from 'react'

import { count, formatPercent } from '../explain/format'
import { drawLines, NARROW, type Drawn, type Link } from './lines'
import { idOf, keysOf, type Collection, type Entity, type Table } from './model'
import { lineOf, type Mark, type View } from './view'

/** The most keys that a card lists. */
const MAX_NOTES = 5

/** The picture of the table: its item collections on the left, those of its index on the right. */
export function Canvas({
  table,
  view,
  only,
  onOpen,
}: {
  table: Table
  view: View
  /** Whether only the marked cards are shown. */
  only: boolean
  onOpen: (collection: Collection) => void
}) {
  const canvas = useRef<HTMLDivElement>(null)
  const [lines, setLines] = useState<Drawn[]>([])
  // Then all cards are in one column, those of the index below those of the table.
  const [narrow, setNarrow] = useState(false)
  const [pointed, setPointed] = useState('')

  useEffect(() => {
    const element = canvas.current
    if (!element) {
      return
    }
    const links = [...linksOf(table), ...view.arrows.map((arrow) => ({ ...arrow, kind: 'reads' as const }))]
    // It also reports the first size.
    const observer = new ResizeObserver(() => {
      setNarrow(element.clientWidth < NARROW)
      setLines(drawLines(element, links))
    })
    observer.observe(element)
    return () => {
      observer.disconnect()
    }
  }, [table, view, only])

  const groups = groupsOf(table, view)
  const shown = (collection: Collection) => !only || view.marks.has(idOf(collection))
  const card = (collection: Collection) => (
    <Card
      key={idOf(collection)}
      table={table}
      collection={collection}
      mark={view.marks.get(idOf(collection))}
      onOpen={onOpen}
      onPoint={setPointed}
    />
  )
  return (
    <div className="canvas" ref={canvas}>
      <svg className="lines" aria-hidden="true">
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
            <path d="M0 0 8 4 0 8z" />
          </marker>
        </defs>
        {lines.map(({ id, kind, path, label, x, y, turned }) => (
          <g key={id} className={`line line-${kind}`} data-pointed={id.split(' ').some((end) => pointed !== '' && end.startsWith(pointed))}>
            <path d={path} markerEnd={kind === 'reads' ? 'url(#arrow)' : undefined} />
            {label && (
              <text x={x} y={y} transform={turned ? `rotate(-90 ${x} ${y})` : undefined}>
                {label}
              </text>
            )}
          </g>
        ))}
      </svg>
      <h2 className="side">
        Table <code>{table.table}</code>
      </h2>
      {narrow && groups.map(({ main }) => main).filter(shown).map(card)}
      <h2 className="side">
        Index <code>{table.index}</code>
      </h2>
      {narrow
        ? groups.flatMap(({ index }) => index).filter(shown).map(card)
        : groups.map(({ main, index }) => {
            const left = shown(main) ? card(main) : null
            const right = index.filter(shown).map(card)
            return (
              (left ?? right.length > 0) && (
                <div className="group" key={idOf(main)}>
                  <div className="stack">{left}</div>
                  <div className="stack">{right}</div>
                </div>
              )
            )
          })}
    </div>
  )
}

function Card({
  table,
  collection,
  mark,
  onOpen,
  onPoint,
}: {
  table: Table
  collection: Collection
  mark: Mark | undefined
  onOpen: (collection: Collection) => void
  /** Called with the card's ID while the mouse or the focus is there. */
  onPoint: (id: string) => void
}) {
  const id = idOf(collection)
  const heat = mark?.heat ?? null
  const entities = collection.entities.flatMap(
    (name) => table.entities.find((entity) => entity.name === name) ?? [],
  )
  return (
    <article
      className="card"
      data-at={id}
      data-marked={mark !== undefined}
      data-heat={heat === null ? undefined : heat >= 1 ? 'over' : heat >= 0.5 ? 'warm' : 'cool'}
      style={{ '--heat': Math.min(heat ?? 0, 1) } as CSSProperties}
      onPointerEnter={() => onPoint(`${id}/`)}
      onPointerLeave={() => onPoint('')}
      onFocus={() => onPoint(`${id}/`)}
      onBlur={() => onPoint('')}
      aria-label={`${collection.in === 'table' ? 'Table' : 'Index'}: ${collection.key}`}
    >
      <h3>
        {collection.read ? (
          <button
            type="button"
            title="Read real items"
            onClick={() => onOpen(collection)}
          >
            {collection.key}
          </button>
        ) : (
          <span>{collection.key}</span>
        )}
        <small title={collection.sharded ? 'This key is spread over several partition keys.' : undefined}>
          {collection.in}
          {collection.sharded &&
            (collection.shards === 1 ? ' · sharded, 1 shard' : ` · ${collection.shards} shards, #0 to #${collection.shards - 1}`)}
        </small>
      </h3>
      {mark && mark.notes.length > 0 && (
        <ul className="notes">
          {mark.notes.slice(0, MAX_NOTES).map(({ step, current, text, keys }, position) => (
            <li key={position} data-current={current}>
              {step !== null && <b title={`Round trip ${step}`}>{step}</b>}
              <div>
                <span>{text}</span>
                {keys.length > 0 && (
                  <ul>
                    {keys.slice(0, MAX_NOTES).map((key) => (
                      <li key={key}>{key}</li>
                    ))}
                    {keys.length > MAX_NOTES && <li>and {count(keys.length - MAX_NOTES, 'more key')}</li>}
                  </ul>
                )}
              </div>
            </li>
          ))}
          {mark.notes.length > MAX_NOTES && <li>and {count(mark.notes.length - MAX_NOTES, 'more request')}</li>}
        </ul>
      )}
      <ul className="records">
        {entities.map((entity) => (
          <li
            key={entity.name}
            data-at={lineOf(id, entity.name)}
            data-marked={mark?.entities.has(entity.name) ?? false}
          >
            <b>{entity.name}</b> <code>{keysOf(entity, collection.in)[1]}</code>{' '}
            <small>{factsOf(table, entity, collection.in).join(' · ')}</small>
          </li>
        ))}
      </ul>
    </article>
  )
}

function factsOf(table: Table, entity: Entity, where: Collection['in']): string[] {
  const state = table.derivations.find((derivation) => derivation.entity === entity.name)
  return [
    entity.kind === 'record' ? '' : entity.kind,
    entity.of && where === 'table' ? `derives from ${entity.of}` : '',
    entity.custom ? 'declared by the shop' : '',
    entity.optional && where === 'index' ? 'some records' : '',
    where === 'index' ? `stored as ${entity.pk}, ${entity.sk}` : '',
    where === 'table' && entity.indexPK ? `in ${table.index}: ${entity.indexPK}` : '',
    ...entity.attributes.filter(({ custom }) => custom).map(({ name }) => `own field ${name}`),
    state && state.state !== 'readable' ? `not readable: ${state.state}, ${formatPercent(state.progress)}` : '',
  ].filter((fact) => fact !== '')
}

/** Each collection of the table with the collections of the index that contain its records. */
function groupsOf(table: Table, view: View): { main: Collection; index: Collection[] }[] {
  const groups = table.collections
    .filter((collection) => collection.in === 'table')
    .map((main) => ({ main, index: [] as Collection[] }))
  for (const collection of table.collections.filter((c) => c.in === 'index')) {
    groups.find(({ main }) => main.entities.includes(collection.entities[0] ?? ''))?.index.push(collection)
  }
  const rank = ({ main, index }: (typeof groups)[number]) =>
    Math.min(...[main, ...index].map((collection) => rankOf(view.marks.get(idOf(collection)))))
  // Collections that the index contains come first, so that the columns are even.
  return groups.sort((a, b) => rank(a) - rank(b) || Math.sign(b.index.length) - Math.sign(a.index.length))
}

/** The first round trip is on top, or the hottest key. */
function rankOf(mark: Mark | undefined): number {
  return mark ? (mark.heat === null ? (mark.notes[0]?.step ?? 0) : -mark.heat) : 1e6
}

function linksOf(table: Table): Link[] {
  const lines = (where: Collection['in'], name: string) =>
    table.collections
      .filter((collection) => collection.in === where && collection.entities.includes(name))
      .map((collection) => lineOf(idOf(collection), name))
  return table.entities.flatMap((entity) =>
    lines('table', entity.name).flatMap((own): Link[] => [
      ...lines('table', entity.of).map((from) => ({ kind: 'derives' as const, from, to: own, label: '' })),
      ...lines('index', entity.name).map((to) => ({ kind: 'index' as const, from: own, to, label: '' })),
    ]),
  )
}
