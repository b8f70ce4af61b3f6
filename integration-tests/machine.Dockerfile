# A machine with systemd as process 1, for the container tests: etcd and two packages of Kafila, not installed yet.
# A file of its own, because the legacy builder of Docker builds every stage before the wanted one, and needs the
# files of all of them.
ARG RUN_IMAGE=debian:bookworm-slim
FROM ${RUN_IMAGE}
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        adduser dbus openssl procps systemd systemd-sysv \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin
COPY etcd etcdctl /usr/local/bin/
COPY kafila-1.deb kafila-2.deb /root/
STOPSIGNAL SIGRTMIN+3
CMD ["/sbin/init"]
