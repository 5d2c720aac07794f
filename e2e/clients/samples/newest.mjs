import { gql } from '@apollo/client'

const known = gql`fragment Known on Order { version }`

/** Runs a mutation with Apollo Client. It caches the order of the payload unless the cache holds a newer version. */
export async function mutateOrder(client, { mutation, variables }) {
  const { data } = await client.mutate({ mutation, variables, fetchPolicy: 'no-cache' })
  const { order } = Object.values(data)[0]
  const cached = order && client.cache.readFragment({ id: client.cache.identify(order), fragment: known })
  if (order && order.version >= (cached?.version ?? 0)) {
    client.cache.write({ dataId: 'ROOT_MUTATION', query: mutation, variables, result: data })
  }
  return data
}
