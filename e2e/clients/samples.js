import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { pathToFileURL } from 'node:url'

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

/** Makes a folder for samples, with the schema, that goes with the test file. */
export function makeFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'ordergraph-samples-'))
  after(() => rmSync(folder, { recursive: true }))
  symlinkSync(join(import.meta.dirname, 'node_modules'), join(folder, 'node_modules'))
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  copyFileSync(join(import.meta.dirname, '../../deploy/subgraph.graphqls'), join(folder, 'subgraph.graphqls'))
  return folder
}

/** Runs a tool of node_modules in a folder. */
export function run(folder, tool, ...args) {
  execFileSync(join(import.meta.dirname, 'node_modules/.bin', tool), args, { cwd: folder, encoding: 'utf8', stdio: 'pipe' })
}

/** Imports a module by its path. */
export const load = (path) => import(pathToFileURL(path).href)
