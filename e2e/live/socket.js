import WebSocket from 'ws'

/** A socket without a client: it sends what it is told, and keeps what comes. */
export async function open(server, protocols = ['graphql-transport-ws'], options = {}) {
  const socket = new WebSocket(server.ws, protocols, options)
  const messages = []
  let arrived = () => {}
  socket.on('message', (text) => {
    messages.push(JSON.parse(text))
    arrived()
  })
  const closed = new Promise((resolve) => socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() })))
  await new Promise((resolve, reject) => {
    socket.on('open', resolve)
    socket.on('error', reject)
  })
  return {
    socket,
    closed,
    send: (message) => socket.send(typeof message === 'string' ? message : JSON.stringify(message)),
    /** The next message of a type. */
    async receive(type) {
      for (;;) {
        const at = messages.findIndex((m) => m.type === type)
        if (at >= 0) {
          return messages.splice(at, 1)[0]
        }
        await new Promise((resolve) => (arrived = resolve))
      }
    },
  }
}
