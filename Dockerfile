FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN make build OUT=/ordergraph

# The image contains only the binary and the root certificates. It runs without root permissions.
FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /ordergraph /ordergraph
# Without ORDERGRAPH_STORE, the server would use an in-memory store. Set ORDERGRAPH_AUTH to jwt or
# none. With none, the server can only be reached from the container itself, unless -addr is :8080.
ENV ORDERGRAPH_STORE=dynamodb PORT=8080
EXPOSE 8080
USER 65532:65532
ENTRYPOINT ["/ordergraph"]
