import { useGraphiQL, useGraphiQLActions } from '@graphiql/react'
import { useEffect, useSyncExternalStore } from 'react'

import { authorizationOf, type AccessStore } from './access'

/** How many milliseconds after the last change the headers count as complete. */
const PAUSE = 600

/**
 * Explains what to do if the server refuses the schema query. It sends the query
 * again when the headers editor contains another token.
 */
export function AccessNotice({ store }: { store: AccessStore }) {
  const { refusal } = useSyncExternalStore(store.subscribe, store.snapshot)
  const headerEditor = useGraphiQL((state) => state.headerEditor)
  const actions = useGraphiQLActions()

  useEffect(() => {
    if (!headerEditor) {
      return
    }
    let timer: number | undefined
    const subscription = headerEditor.onDidChangeModelContent(() => {
      window.clearTimeout(timer)
      timer = window.setTimeout(() => {
        const authorization = authorizationIn(headerEditor.getValue())
        // A tab without a token must not discard the schema.
        if (authorization !== '' && authorization !== store.snapshot().authorization) {
          void actions.introspect()
        }
      }, PAUSE)
    })
    return () => {
      window.clearTimeout(timer)
      subscription.dispose()
    }
  }, [headerEditor, actions, store])

  switch (refusal) {
    case null:
      return null
    case 'UNAUTHENTICATED':
      return (
        <p role="status" className="access-notice">
          This server requires authentication. Put a token into <b>Headers</b>, below the query:{' '}
          <code>{'{"Authorization": "Bearer ..."}'}</code>. The page does not store
          the token. The documentation appears when the server accepts it.
        </p>
      )
    default:
      return (
        <p role="status" className="access-notice">
          The server refused the schema query (<code>{refusal}</code>), so there is no documentation
          and no completion. You can still run operations.
        </p>
      )
  }
}

/** The Authorization header in the editor's text, or an empty string while the text is not JSON. */
function authorizationIn(text: string): string {
  try {
    return authorizationOf(JSON.parse(text) as Record<string, unknown> | null)
  } catch {
    return ''
  }
}
