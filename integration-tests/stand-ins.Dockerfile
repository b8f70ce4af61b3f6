# Stand-ins of the images of docker-compose.yml that cannot be made of Debian packages, for the container tests.
ARG RUN_IMAGE=debian:bookworm-slim

# --- systemd: a machine of its own with systemd as process 1, etcd and the package of Kafila, not installed yet. First, because engines
# without BuildKit build the stages above the wanted one, too, whose files its context lacks.
FROM ${RUN_IMAGE} AS systemd
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        adduser dbus openssl procps systemd systemd-sysv \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin
COPY etcd etcdctl /usr/local/bin/
COPY kafila.deb /root/
STOPSIGNAL SIGRTMIN+3
CMD ["/sbin/init"]

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
