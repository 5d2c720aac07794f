import assert from 'node:assert/strict'
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const docs = join(import.meta.dirname, '../../docs')

/** Writes the sample of a name, as the docs have it, to a folder, and returns its path. The first line of a sample is its name. */
export function writeSample(name, folder) {
  const found = readdirSync(docs)
    .filter((file) => file.endsWith('.md'))
    .flatMap((file) => [...readFileSync(join(docs, file), 'utf8').matchAll(/^( *)```\w+\n([^]*?)^\1```$/gm)])
    .map(([, indent, text]) => text.replaceAll(new RegExp(`^${indent}`, 'gm'), ''))
    .filter((text) => text.startsWith(`// ${name}:`) || text.startsWith(`// ${name}\n`))
  assert.equal(found.length, 1, `the docs have one sample ${name}`)
  const path = join(folder, name)
  writeFileSync(path, found[0])
  return path
}
