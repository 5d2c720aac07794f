import type { Collection, Table } from './model'

/** The writes to one partition key. */
export interface KeyLoad {
  key: string
  collection: Collection
  /** The write units of one order. */
  units: number
  /** The write units that the key's partitions provide each second. */
  capacity: number
  /** The used part of the capacity: 1 is the limit. */
  used: number
  /** Whether every order writes to this key. Otherwise, each customer, product etc. has a key. */
  everyOrder: boolean
  /**
   * The field of a list whose values have a key each, or an empty string. How the orders spread
   * over the values is unknown, so all orders are assumed to have the same one.
   */
  value: string
  /** The most orders a second. */
  limit: number
}

/**
 * The load of each key at a number of orders a second, hottest first. The share is the part of
 * the orders that belong to the same customer, product or warehouse. A key of one order is left
 * out, because an order is placed once. So is a key that claims a value for one order.
 */
export function loadsOf(table: Table, rate: number, share: number): KeyLoad[] {
  const loads = table.collections.flatMap((collection) => {
    const own = collection.writeUnitsPerOrder
    const keys =
      collection.keys.length > 0
        ? collection.keys
        : own === null || collection.key.includes('{orderId}') || isClaim(table, collection)
          ? []
          : [{ key: collection.key, writeUnitsPerOrder: own }]
    return keys.map(({ key, writeUnitsPerOrder: units }) => {
      const value = key.startsWith('LIST#') ? placeholderOf(key) : ''
      const everyOrder = value !== '' || !key.includes('{')
      const capacity = table.load.writeUnitsPerPartition * collection.shards
      const limit = capacity / (units * (everyOrder ? 1 : share))
      return { key, collection, units, capacity, used: rate / limit, everyOrder, value, limit }
    })
  })
  return loads.sort((a, b) => b.used - a.used)
}

/** The name of a key's first variable, such as `customerId`, or an empty string. */
export function placeholderOf(key: string): string {
  return /\{(\w+)\}/.exec(key)?.[1] ?? ''
}

/** The most orders a second with this number of shards. Infinity if shards do not limit them. */
export function limitOf(loads: KeyLoad[]): number {
  return Math.min(...sharded(loads).map(({ limit }) => limit))
}

/** How many shards a number of orders a second needs. */
export function shardsFor(table: Table, loads: KeyLoad[], rate: number): number {
  const needed = sharded(loads).map(({ units }) => (units * rate) / table.load.writeUnitsPerPartition)
  return Math.ceil(Math.max(1, ...needed))
}

function isClaim(table: Table, { entities }: Collection): boolean {
  return table.entities.every(({ name, kind }) => kind === 'claim' || !entities.includes(name))
}

function sharded(loads: KeyLoad[]): KeyLoad[] {
  return loads.filter(({ collection, everyOrder }) => collection.sharded && everyOrder)
}
