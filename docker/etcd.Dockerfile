# etcd on the base image of Kafila, for machines that reach no registry; elsewhere, use the image of etcd's
# project. scripts/build-images calls this with a context of `etcd`, `etcdctl` and `etcdutl` alone.
ARG RUN_IMAGE=debian:bookworm-slim
FROM ${RUN_IMAGE}
RUN echo 'etcd:x:65531:65531:etcd:/nonexistent:/usr/sbin/nologin' >>/etc/passwd \
    && echo 'etcd:x:65531:' >>/etc/group \
    && install -d -o 65531 -g 65531 -m 0700 /var/lib/etcd
COPY etcd etcdctl etcdutl /usr/local/bin/
USER 65531:65531
VOLUME /var/lib/etcd
CMD ["etcd"]
