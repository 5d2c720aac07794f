import { CriticalityLevel, diff } from '@graphql-inspector/core'

import { build } from './schema.js'

/**
 * What changed from one text of the schema to another, in sentences: `breaking` is what makes a client's document, or the
 * composition with other subgraphs, fail; `dangerous` is what a client can notice, such as an enum's new value.
 */
export async function changes(before, after) {
  const found = { breaking: [], dangerous: [] }
  for (const change of await diff(build(before), build(after))) {
    const level = change.criticality.level
    // Of a plain schema's directives no client knows. Of ours gateways do: without a @key references to the type fail.
    const ofFederation = /^DIRECTIVE_USAGE_.*_REMOVED$/.test(change.type) && /'@?(key|shareable)'/.test(change.message)
    if (level === CriticalityLevel.Breaking || ofFederation) {
      found.breaking.push(change.message)
    } else if (level === CriticalityLevel.Dangerous) {
      found.dangerous.push(change.message)
    }
  }
  return found
}
