# Stand-ins of the images of docker-compose.yml that cannot be made of Debian packages, for the container tests.
ARG RUN_IMAGE=debian:bookworm-slim

# --- collector: receives what services export (src/containers/stand_in.rs).
FROM ${RUN_IMAGE} AS collector
COPY container-tests /usr/local/bin/container-tests
# The user of the collector's own image.
USER 10001:10001
ENTRYPOINT ["container-tests", "collector"]

# --- grafana: only holds what the stack mounts, and reads it as Grafana's user.
FROM ${RUN_IMAGE} AS grafana
USER 472:0
CMD ["sleep", "infinity"]
