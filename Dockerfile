# Images of Kafila: `server` for every service, `client-node` for the node agent with the tools of its tasks.
#
#   docker build -t kafila .
#   docker build -t kafila-client-node --target client-node .
#
# Works with BuildKit and with the legacy builder. The base images are arguments, so that machines without a
# registry can use their own (scripts/base-image). Dockerfile.prebuilt puts a finished binary on the two
# base stages instead of compiling (scripts/build-images).
ARG RUST_IMAGE=rust:1.95-slim-bookworm
ARG RUN_IMAGE=debian:bookworm-slim

# --- server-base: a user, the entrypoint, the health check; everything but the binary.
FROM ${RUN_IMAGE} AS server-base
LABEL org.opencontainers.image.title="Kafila" \
    org.opencontainers.image.description="Workload orchestrator: every service and the command" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.source="https://github.com/kafila/kafila"
RUN echo 'kafila:x:65532:65532:Kafila:/nonexistent:/usr/sbin/nologin' >>/etc/passwd \
    && echo 'kafila:x:65532:' >>/etc/group
COPY docker/entrypoint /usr/local/bin/kafila-entrypoint
# gRPC and metrics, wherever the service listens by default.
EXPOSE 4646 9100
USER 65532:65532
# SIGTERM drains: open requests finish, a leader resigns.
STOPSIGNAL SIGTERM
# A check starts a process, which costs about 0.1 s of cpu time.
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=3 \
    CMD ["/usr/local/bin/kafila-entrypoint", "health"]
ENTRYPOINT ["/usr/local/bin/kafila-entrypoint"]
CMD ["-help"]

# --- client-node-base: root, what tasks of raw_exec usually call, what networks of allocations need, and the programs
# of git artifacts (docs/artifacts.md).
FROM server-base AS client-node-base
LABEL org.opencontainers.image.title="Kafila client-node" \
    org.opencontainers.image.description="Node agent of the workload orchestrator Kafila"
# The agent starts tasks as other users, and owns their directories.
USER 0:0
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        ca-certificates containernetworking-plugins curl git iproute2 iptables nftables openssh-client procps \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin
VOLUME /var/lib/kafila
CMD ["client-node"]

# --- manifests: the parts of the sources that the dependencies depend on.
FROM ${RUST_IMAGE} AS manifests
WORKDIR /source
COPY . .
# Every crate keeps its manifest and its root files, as empty programs. The next stage is then built anew
# only when a manifest, the lock file or the list of root files changes.
RUN find cli crates integration-tests sdk services tools/kafila-bench xtask fuzz -type f ! -name Cargo.toml \
        ! -path '*/src/lib.rs' ! -path '*/src/main.rs' ! -path '*/src/bin/*.rs' ! -name build.rs \
        ! -path '*/benches/*.rs' ! -path '*/examples/*.rs' ! -path '*/tests/*.rs' -delete \
    && find cli crates integration-tests sdk services tools/kafila-bench xtask fuzz -name '*.rs' \
        -exec sh -c 'for file; do echo "fn main() { }" >"$file"; done' _ {} + \
    && find . -mindepth 1 -maxdepth 1 ! -name cli ! -name crates ! -name integration-tests \
        ! -name sdk ! -name services ! -name xtask ! -name fuzz ! -name tools ! -name .cargo ! -name 'Cargo.*' \
        -exec rm -rf {} +

# --- dependencies: third-party crates, compiled.
FROM ${RUST_IMAGE} AS dependencies
# `dist` is what ships: smaller and faster, and slower to build than `release`.
ARG PROFILE=dist
WORKDIR /source
COPY --from=manifests /source .
RUN cargo build --locked --profile "$PROFILE" --package kafila --bin kafila

# --- build: our own crates, compiled.
FROM dependencies AS build
ARG PROFILE=dist
# The commit for `kafila version`: the context has no .git.
ARG REVISION=unknown
COPY . .
# Newer than the empty programs, or Cargo takes those for up to date.
RUN find cli crates sdk services -name '*.rs' -exec touch {} + \
    && KAFILA_COMMIT="${REVISION#unknown}" cargo build --locked --profile "$PROFILE" --package kafila --bin kafila \
    && mkdir /out \
    && scripts/split-symbols "target/$PROFILE/kafila" /out

# --- symbols: for `docker build --target symbols --output`, to read a core dump or a profile.
FROM scratch AS symbols
COPY --from=build /out/kafila.debug /

# --- client-node
FROM client-node-base AS client-node
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}"
# Part of the version that a process reports.
ENV KAFILA_REVISION="${REVISION}"
COPY --from=build /out/kafila /usr/local/bin/kafila

# --- server: the default.
FROM server-base AS server
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}"
# Part of the version that a process reports.
ENV KAFILA_REVISION="${REVISION}"
COPY --from=build /out/kafila /usr/local/bin/kafila
