import { readFileSync } from 'node:fs'

import { ApolloServer } from '@apollo/server'
import { ApolloServerPluginInlineTraceDisabled } from '@apollo/server/plugin/disabled'
import { startStandaloneServer } from '@apollo/server/standalone'
import { buildSubgraphSchema } from '@apollo/subgraph'
import { parse } from 'graphql'

export const typeDefs = parse(readFileSync(new URL('loyalty.graphqls', import.meta.url), 'utf8'))

const resolvers = {
  Query: {
    parcels: (_, { ids }) => ids.map((id) => ({ id })),
    members: (_, { ids }) => ids.map((id) => ({ id })),
    earned: (_, { typenames, keys }) =>
      typenames.map((__typename, i) => ({ __typename, [__typename === 'Product' ? 'sku' : 'id']: keys[i] })),
  },
  Order: {
    tracking: ({ id }) => `parcel of ${id}`,
    insurance: ({ total }) => ({ amount: (2 * total.amount).toFixed(2), currencyCode: total.currencyCode }),
  },
  Customer: {
    loyaltyPoints: ({ id }) => id.length,
    rewards: () => ({
      edges: [{ cursor: 'mug', node: { name: 'A mug', worth: { amount: '4.00', currencyCode: 'USD' } } }],
      pageInfo: { hasNextPage: false, hasPreviousPage: false, startCursor: 'mug', endCursor: 'mug' },
    }),
  },
  Product: { points: () => 1 },
}

/** Starts the other team's subgraph on a free port. */
export async function startLoyalty() {
  const server = new ApolloServer({ schema: buildSubgraphSchema([{ typeDefs, resolvers }]), plugins: [ApolloServerPluginInlineTraceDisabled()] })
  const { url } = await startStandaloneServer(server, { listen: { host: '127.0.0.1', port: 0 } })
  return { url, stop: () => server.stop() }
}
