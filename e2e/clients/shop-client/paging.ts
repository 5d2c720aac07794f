type Page<Node> = { nodes: Node[]; pageInfo: { hasNextPage: boolean; endCursor: string | null } }

/** Reads a connection page by page. Each page begins after the last cursor of the previous page. */
export async function* pages<Node>(read: (after: string | null) => Promise<Page<Node>>): AsyncGenerator<Node[]> {
  for (let after: string | null = null, more = true; more; ) {
    const { nodes, pageInfo }: Page<Node> = await read(after)
    yield nodes
    after = pageInfo.endCursor
    more = pageInfo.hasNextPage
  }
}
