import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

import { buildSchema } from 'graphql'

/** The repository's root. */
export const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '')

/** The files that contain the whole schema. `_service` omits the definitions of federation. */
export const schemaFiles = [process.env.SUBGRAPH ?? `${root}/deploy/subgraph.graphqls`, `${root}/schema/federation.graphqls`]

/** The schema as `_service` tells it. */
export const published = readFileSync(schemaFiles[0], 'utf8')

/** The schema of the last release, in the same form. */
export const released = readFileSync(new URL('released.graphqls', import.meta.url), 'utf8')

/** The subgraph of another team. */
export const loyalty = readFileSync(`${root}/e2e/federation/loyalty.graphqls`, 'utf8')

/** What composers bring themselves. */
const directives = `
directive @link(url: String!, import: [String]) repeatable on SCHEMA
directive @key(fields: String!, resolvable: Boolean = true) repeatable on OBJECT | INTERFACE
directive @shareable repeatable on OBJECT | FIELD_DEFINITION
`

/** A schema of a subgraph's text. */
export const build = (text) => buildSchema(text + directives)
