import { composeServices as composeApollo } from '@apollo/composition'
import { ApolloGateway } from '@apollo/gateway'
import { ApolloServer } from '@apollo/server'
import { createGatewayRuntime } from '@graphql-hive/gateway-runtime'
import { composeServices as composeGuild } from '@theguild/federation-composition'

function composed({ errors, supergraphSdl }) {
  if (errors?.length) {
    throw new Error(errors.join('\n'))
  }
  return supergraphSdl
}

/** The tested gateways, each with the composer of the same vendor. */
export const gateways = {
  async '@apollo/gateway'(subgraphs) {
    const logger = { debug() {}, info() {}, warn: console.warn, error: console.error }
    const server = new ApolloServer({ gateway: new ApolloGateway({ supergraphSdl: composed(composeApollo(subgraphs)), logger }), logger })
    await server.start()
    return {
      async ask(query, variables) {
        const { body } = await server.executeOperation({ query, variables })
        // As over HTTP: without the null prototypes of graphql-js.
        return JSON.parse(JSON.stringify(body.singleResult))
      },
      stop: () => server.stop(),
    }
  },

  async 'Hive Gateway'(subgraphs) {
    const gateway = createGatewayRuntime({ supergraph: composed(composeGuild(subgraphs)), logging: false, maskedErrors: false })
    return {
      async ask(query, variables) {
        const response = await gateway.fetch('http://gateway.example/graphql', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ query, variables }),
        })
        return response.json()
      },
      stop: () => gateway.dispose(),
    }
  },
}
