/** The table as the server declares it: the response of GET and POST /table. */
export interface Table {
  table: string
  index: string
  entities: Entity[]
  collections: Collection[]
  references: { attribute: string; collection: string }[]
  accessPatterns: AccessPattern[]
  writePatterns: { fields: string[]; entities: string[]; optionalEntities: string[] }[]
  layout: { shards: number; maxShards: number; eras: { from: string; shards: number; timeZone: string }[] }
  derivations: { name: string; entity: string; state: string; progress: number }[]
  load: { writeUnitsPerPartition: number; writeUnitsPerOrder: number }
  prices: { region: string; readDollarsPerMillion: number; writeDollarsPerMillion: number }
  /** What an extension adds, if the document describes the table with an extension. */
  proposal: Proposal | null
}

/** A kind of record. */
export interface Entity {
  name: string
  kind: string
  /** The entity whose records this one derives from; empty for a base record. */
  of: string
  pk: string
  sk: string
  /** The keys in the index; empty if the index does not contain the record. */
  indexPK: string
  indexSK: string
  optional: boolean
  attributes: { name: string; type: string; custom: boolean }[]
  custom: boolean
}

/** All records with the same partition key, in the table or in the index. */
export interface Collection {
  key: string
  in: 'table' | 'index'
  sharded: boolean
  /** The number of partition keys for new records. */
  shards: number
  entities: string[]
  /** The write units of one order's mutations; null if orders do not write here. */
  writeUnitsPerOrder: number | null
  /** Keys of the collection, if their load differs. */
  keys: { key: string; writeUnitsPerOrder: number }[]
  /** How to read real records; null if no query does. */
  read: {
    /** The placeholder of the key whose value the query needs, or empty. */
    variable: string
    /** The variable of the query that receives the value. */
    argument: string
    /** The possible values of an enum. */
    values: string[]
    document: string
    connection: string
  } | null
}

export interface AccessPattern {
  id: string
  description: string
  fields: string[]
  operation: string
  perShard: boolean
  index: string
  pk: string
  sk: string
  descending: boolean
  entities: string[]
  request: unknown
}

export interface Proposal {
  entities: string[]
  accessPatterns: string[]
  /** Lists that the server has and the extension lacks. */
  removed: string[]
  queries: {
    field: string
    requests: number
    roundTrips: number
    readUnits: number
    maxReadUnits: number
    dollarsPerMillion: number
  }[]
  /** The write units that each order needs in addition. */
  writeUnitsPerOrder: number
  plan: {
    derivation: string
    records: number | null
    writeUnits: number | null
    dollars: number | null
    command: string
  }[]
}

/** The ID of a collection within the page. */
export function idOf(collection: Collection): string {
  return `${collection.in}:${collection.key}`
}

/** The keys of an entity in the table or in the index. */
export function keysOf(entity: Entity, where: Collection['in']): [pk: string, sk: string] {
  return where === 'table' ? [entity.pk, entity.sk] : [entity.indexPK, entity.indexSK]
}
