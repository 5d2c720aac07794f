import type { GraphiQLPlugin } from '@graphiql/react'

import { ExplainIcon } from './ExplainIcon'
import { ExplainPanel } from './ExplainPanel'
import type { ExplainStore } from './store'

/** The sidebar entry that shows what the last operation asked of DynamoDB. */
export function createExplainPlugin(store: ExplainStore): GraphiQLPlugin {
  return {
    title: 'Explain',
    icon: ExplainIcon,
    content: () => <ExplainPanel store={store} />,
  }
}
