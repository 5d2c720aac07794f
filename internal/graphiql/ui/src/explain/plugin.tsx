import type { GraphiQLPlugin } from '@graphiql/react'

import { ExplainIcon } from './ExplainIcon'
import { ExplainPanel } from './ExplainPanel'
import type { ExplainStore } from './store'

/** The sidebar entry that shows the DynamoDB requests of the last operation. */
export function createExplainPlugin(store: ExplainStore): GraphiQLPlugin {
  return {
    title: 'Explain',
    icon: ExplainIcon,
    content: () => <ExplainPanel store={store} />,
  }
}
