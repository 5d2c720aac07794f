/**
 * The URL that queries go to, from the page's `graphql-endpoint` meta tag.
 *
 * The server's Content-Security-Policy allows only the page's own origin, so an
 * endpoint on another origin cannot work. An error here is clearer than a blocked
 * request.
 */
export function readEndpoint(page: Document): URL {
  const written = page.querySelector<HTMLMetaElement>('meta[name="graphql-endpoint"]')?.content
  const endpoint = new URL(written ?? '/graphql', page.baseURI)
  if (endpoint.origin !== new URL(page.baseURI).origin) {
    throw new Error(`the GraphQL endpoint ${endpoint.href} is not on this page's origin`)
  }
  return endpoint
}
