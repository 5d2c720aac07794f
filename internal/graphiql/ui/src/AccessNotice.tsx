import { useGraphiQL, useGraphiQLActions } from '@graphiql/react'
import { useEffect, useSyncExternalStore } from 'react'

import { authorizationOf, type AccessStore } from './access'

/** How long nobody has typed, in milliseconds, when headers are taken to be complete. */
const PAUSE = 600

/**
 * Says what to do where the server does not tell its schema to whoever asks,
 * and asks again as soon as there is another token in the headers editor.
 */
export function AccessNotice({ store }: { store: AccessStore }) {
  const { refusal } = useSyncExternalStore(store.subscribe, store.snapshot)
  const headerEditor = useGraphiQL((state) => state.headerEditor)
  const actions = useGraphiQLActions()

  useEffect(() => {
    if (!headerEditor) {
      return
    }
    let pause: number | undefined
    const listening = headerEditor.onDidChangeModelContent(() => {
      window.clearTimeout(pause)
      pause = window.setTimeout(() => {
        const authorization = authorizationIn(headerEditor.getValue())
        // A tab without a token is no reason to forget the schema.
        if (authorization !== '' && authorization !== store.snapshot().authorization) {
          void actions.introspect()
        }
      }, PAUSE)
    })
    return () => {
      window.clearTimeout(pause)
      listening.dispose()
    }
  }, [headerEditor, actions, store])

  switch (refusal) {
    case null:
      return null
    case 'UNAUTHENTICATED':
      return (
        <p role="status" className="access-notice">
          This server wants to know who asks. Put a token into <b>Headers</b>, below the query:{' '}
          <code>{'{"Authorization": "Bearer ..."}'}</code>. It stays in this page only, and the
          documentation appears as soon as the server takes it.
        </p>
      )
    default:
      return (
        <p role="status" className="access-notice">
          The server does not tell its schema (<code>{refusal}</code>), so there is no documentation
          and no completion. Operations can be run.
        </p>
      )
  }
}

/** The Authorization header in the editor's text; empty while that is no JSON. */
function authorizationIn(text: string): string {
  try {
    return authorizationOf(JSON.parse(text) as Record<string, unknown> | null)
  } catch {
    return ''
  }
}
