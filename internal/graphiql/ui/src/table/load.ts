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
}

/**
 * The load of each key at a number of orders a second, hottest first. The share is the part of
 * the orders that belong to the same customer, product or warehouse. A key of one order is left
 * out, because an order is placed once.
 */
export function loadsOf(table: Table, rate: number, share: number): KeyLoad[] {
  const loads = table.collections.flatMap((collection) => {
    const own = collection.writeUnitsPerOrder
    const keys =
      collection.keys.length > 0
        ? collection.keys
        : own === null || collection.key.includes('{orderId}')
          ? []
          : [{ key: collection.key, writeUnitsPerOrder: own }]
    return keys.map(({ key, writeUnitsPerOrder: units }) => {
      const everyOrder = !key.includes('{')
      const capacity =
        table.load.writeUnitsPerPartition * collection.shards
      const used = (units * rate * (everyOrder ? 1 : share)) / capacity
      return { key, collection, units, capacity, used, everyOrder }
    })
  })
  return loads.sort((a, b) => b.used - a.used)
}

/** The most orders a second with this number of shards. Infinity if shards do not limit them. */
export function limitOf(loads: KeyLoad[]): number {
  return Math.min(...sharded(loads).map(({ capacity, units }) => capacity / units))
}

/** How many shards a number of orders a second needs. */
export function shardsFor(table: Table, loads: KeyLoad[], rate: number): number {
  const needed = sharded(loads).map(({ units }) => (units * rate) / table.load.writeUnitsPerPartition)
  return Math.ceil(Math.max(1, ...needed))
}

function sharded(loads: KeyLoad[]): KeyLoad[] {
  return loads.filter(({ collection, everyOrder }) => collection.sharded && everyOrder)
}
