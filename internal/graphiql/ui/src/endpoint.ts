/**
 * The URL that queries go to, from the page's `graphql-endpoint` meta tag.
 *
 * The server's Content-Security-Policy allows only the page's own origin, so an
 * endpoint elsewhere could never work; saying so here beats a blocked request.
 */
export function readEndpoint(page: Document): URL {
  const written = page.querySelector<HTMLMetaElement>('meta[name="graphql-endpoint"]')?.content
  const endpoint = new URL(written ?? '/graphql', page.baseURI)
  if (endpoint.origin !== new URL(page.baseURI).origin) {
    throw new Error(`the GraphQL endpoint ${endpoint.href} is not on this page's origin`)
  }
  return endpoint
}
