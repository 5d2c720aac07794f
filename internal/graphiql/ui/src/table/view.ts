import { groupByRoundTrip, type ExplainRequest } from '../explain/model'
import { count } from '../explain/format'
import { formatLoad, listOf } from './format'
import { hitsOf, type Hit } from './match'
import type { KeyLoad } from './load'
import { idOf, type AccessPattern, type Table } from './model'

/** What the picture emphasizes. */
export interface View {
  marks: Map<string, Mark>
  /** Arrows from a record to the collection that was read because of it. */
  arrows: { from: string; to: string; label: string }[]
}

/** The emphasis of one card. */
export interface Mark {
  entities: Set<string>
  notes: Note[]
  /** The used part of the hottest key's capacity. */
  heat: number | null
}

/** A line on a card, with the keys that one request reads or writes. */
export interface Note {
  step: number | null
  current: boolean
  text: string
  keys: string[]
}

/** One round trip of a run. */
export interface Step {
  number: number
  requests: { request: ExplainRequest; hits: Hit[] }[]
  durationMs: number
  sentence: string
  reason: { text: string; from: string; to: string; label: string } | null
}

/** The ID of a record's line in a card. */
export function lineOf(collection: string, entity: string): string {
  return `${collection}/${entity}`
}

/** The round trips of a run, in words. */
export function stepsOf(table: Table, requests: ExplainRequest[]): Step[] {
  const steps: Step[] = []
  for (const trip of groupByRoundTrip(requests)) {
    const all = trip.requests.map((request) => ({ request, hits: hitsOf(table, request) }))
    steps.push({
      number: trip.number ?? steps.length + 1,
      requests: all,
      durationMs: Math.max(...trip.requests.map(({ durationMs }) => durationMs)),
      sentence: `${sentence(all)}.`,
      reason: reasonOf(table, all.flatMap(({ hits }) => hits), steps),
    })
  }
  return steps
}

function sentence(requests: Step['requests']): string {
  const [first, ...rest] = requests
  if (!first) {
    return 'No request'
  }
  if (rest.length > 0) {
    return `${count(requests.length, 'request')} at once`
  }
  const { operation, index, items } = first.request
  const names = [...new Set(first.hits.flatMap(({ entities }) => entities.map(({ name }) => name)))]
  const verb = first.request.writeUnits > 0 ? 'writes' : 'reads'
  // A transaction can write more kinds than a sentence can name.
  const kind = names.length > 0 && names.length <= 4 ? `${listOf(names)} record` : 'record'
  return `One ${operation}${index && ` on the index ${index}`} ${verb} ${count(items, kind)}`
}

/** Why these records could not be read earlier: an earlier record contains only their ID. */
function reasonOf(table: Table, hits: Hit[], earlier: Step[]): Step['reason'] {
  if (earlier.length === 0) {
    return null
  }
  const before = earlier.flatMap(({ requests }) => requests.flatMap((request) => request.hits))
  for (const { collection, key } of hits) {
    const ids = table.references.filter((reference) => reference.collection === collection.key)
    for (const source of before) {
      for (const entity of source.entities) {
        const id = ids.find(({ attribute }) => entity.attributes.some((a) => a.name === attribute))
        if (id && source.collection !== collection) {
          return {
            text: `It must wait, because the ${entity.name} record contains only the ${id.attribute}, and the key ${key} is made from it.`,
            from: lineOf(idOf(source.collection), entity.name),
            to: idOf(collection),
            label: id.attribute,
          }
        }
      }
    }
  }
  return { text: 'It must wait for values of the round trip before.', from: '', to: '', label: '' }
}

/** The keys of the round trips up to the given one. */
export function viewOfSteps(steps: Step[], current: number): View {
  const view: View = { marks: new Map(), arrows: [] }
  for (const step of steps.filter(({ number }) => number <= current)) {
    for (const { request, hits } of step.requests) {
      const own = new Map<string, Note>()
      for (const { collection, entities, key } of hits) {
        const id = idOf(collection)
        const mark = markOf(view, id)
        entities.forEach(({ name }) => mark.entities.add(name))
        const several = request.keys.length > 0
        const text = several ? request.operation : `${request.operation} ${key}`
        const note =
          own.get(id) ??
          (several ? undefined : mark.notes.find((one) => one.step === step.number && one.text === text)) ??
          { step: step.number, current: step.number === current, text, keys: [] }
        if (several && !note.keys.includes(key)) {
          note.keys.push(key)
        }
        if (!mark.notes.includes(note)) {
          mark.notes.push(note)
        }
        own.set(id, note)
      }
    }
    if (step.reason?.from) {
      view.arrows.push(step.reason)
    }
  }
  return view
}

export function viewOfPattern(table: Table, pattern: AccessPattern): View {
  const view: View = { marks: new Map(), arrows: [] }
  const where = pattern.index === '' ? 'table' : 'index'
  for (const collection of table.collections) {
    if (collection.in === where && collection.key === pattern.pk) {
      const mark = markOf(view, idOf(collection))
      pattern.entities.forEach((name) => mark.entities.add(name))
      const text = `${pattern.operation} ${pattern.pk} ${pattern.sk}`
      mark.notes.push({ step: null, current: true, text, keys: [] })
    }
  }
  return view
}

export function viewOfLoad(loads: KeyLoad[]): View {
  const view: View = { marks: new Map(), arrows: [] }
  for (const load of loads) {
    const { key, collection, capacity, used, everyOrder, value } = load
    const mark = markOf(view, idOf(collection))
    mark.heat ??= used
    mark.notes.push({
      step: null,
      current: used >= 1,
      keys: [],
      text: `${everyOrder && value === '' ? key : `one ${key}`}: ${formatLoad(used * capacity, capacity)}${value && `, if all orders have the same ${value}`}`,
    })
  }
  return view
}

/** The records of the given names, such as an extension's. */
export function viewOfEntities(table: Table, names: string[]): View {
  const view: View = { marks: new Map(), arrows: [] }
  for (const collection of table.collections) {
    const found = collection.entities.filter((name) => names.includes(name))
    if (found.length > 0) {
      const mark = markOf(view, idOf(collection))
      found.forEach((name) => mark.entities.add(name))
      mark.notes.push({ step: null, current: true, text: `new: ${found.join(', ')}`, keys: [] })
    }
  }
  return view
}

export function viewOfCollection(id: string): View {
  const view: View = { marks: new Map(), arrows: [] }
  markOf(view, id)
  return view
}

function markOf(view: View, id: string): Mark {
  const mark = view.marks.get(id) ?? { entities: new Set(), notes: [], heat: null }
  view.marks.set(id, mark)
  return mark
}
