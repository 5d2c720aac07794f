FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN make build OUT=/ordergraph

# Nothing but the binary and what it trusts: no shell, no package manager, no root.
FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /ordergraph /ordergraph
# A container never falls into the in-memory store by accident. Set ORDERGRAPH_AUTH to jwt or none. With none it
# listens inside the container only, unless it is run with -addr :8080.
ENV ORDERGRAPH_STORE=dynamodb PORT=8080
EXPOSE 8080
USER 65532:65532
ENTRYPOINT ["/ordergraph"]
