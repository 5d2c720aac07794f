import type { ExplainRequest } from '../explain/model'
import { keysOf, type Collection, type Entity, type Table } from './model'

/** A record, or the records of one kind in an item collection, that a request read or wrote. */
export interface Hit {
  collection: Collection
  entities: Entity[]
  /** The key as explain prints it, such as `STATUS#pending ORDER#*`. */
  key: string
}

/** Finds the item collections of a request's keys. */
export function hitsOf(table: Table, request: ExplainRequest): Hit[] {
  const where = request.index === '' ? 'table' : 'index'
  const keys = request.keys.length > 0 ? request.keys : [request.key]
  return keys.flatMap((key) => hitOf(table, where, key, true) ?? hitOf(table, where, key, false) ?? [])
}

/** The condition of a Query that ends before a sort key, such as `ORDER#1 sk < PAYMENT#`. */
const UP_TO = /^(\S+) (?:gsi1)?sk <=? (\S+)$/

function hitOf(table: Table, where: Collection['in'], key: string, sorted: boolean): Hit | null {
  const [, pkOnly, end] = UP_TO.exec(key) ?? []
  const contains = (entity: Entity): boolean => {
    const [pk, sk] = keysOf(entity, where)
    return pkOnly === undefined || end === undefined
      ? patternOf(pk, sk, sorted).test(key)
      : patternOf(pk, sk, false).test(pkOnly) && fixedOf(sk) < end
  }
  for (const collection of table.collections) {
    const entities = table.entities.filter(
      (entity) => collection.in === where && collection.entities.includes(entity.name) && contains(entity),
    )
    if (entities.length > 0) {
      return { collection, entities, key }
    }
  }
  return null
}

/** Matches a partition key with the fixed part of the sort key, or a partition key alone. */
function patternOf(pk: string, sk: string, sorted: boolean): RegExp {
  return new RegExp(`^${template(pk)}(?:#\\d+)?${sorted ? ` ${escape(fixedOf(sk))}` : '$'}`)
}

/** The part of a sort key before its first variable. */
function fixedOf(sk: string): string {
  return sk.slice(0, (sk + '{').indexOf('{'))
}

function template(key: string): string {
  return key.split(/\{\w+\}/).map(escape).join('.+?')
}

function escape(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}

/** The value of a partition key's first variable, or null if the key has another template. */
export function valueIn(pk: string, key: string): string | null {
  return new RegExp(`^${template(pk).replace('.+?', '(.+?)')}(?:#\\d+)?(?: |$)`).exec(key)?.[1] ?? null
}
