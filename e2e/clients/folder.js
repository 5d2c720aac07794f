import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { pathToFileURL } from 'node:url'

/** Makes a temporary folder with node_modules, the schema and the samples' codegen.config.mjs. It is removed after the tests of the file. */
export function makeFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'ordergraph-samples-'))
  after(() => rmSync(folder, { recursive: true }))
  symlinkSync(join(import.meta.dirname, 'node_modules'), join(folder, 'node_modules'))
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  copyFileSync(join(import.meta.dirname, '../../deploy/subgraph.graphqls'), join(folder, 'subgraph.graphqls'))
  copyFileSync(join(import.meta.dirname, 'samples/codegen.config.mjs'), join(folder, 'codegen.config.mjs'))
  return folder
}

/** Runs a tool of node_modules in a folder. */
export function run(folder, tool, ...args) {
  execFileSync(join(import.meta.dirname, 'node_modules/.bin', tool), args, { cwd: folder, encoding: 'utf8', stdio: 'pipe' })
}

/** Imports a module by its path. */
export const load = (path) => import(pathToFileURL(path).href)
