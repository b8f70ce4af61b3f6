# Debian's Prometheus on the base image of Kafila, for machines that reach no registry; elsewhere, use the image
# of Prometheus' project. scripts/build-images calls this.
ARG RUN_IMAGE=debian:bookworm-slim
FROM ${RUN_IMAGE}
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends prometheus \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin \
    && install -d -o nobody -g nogroup -m 0755 /prometheus
USER nobody
VOLUME /prometheus
ENTRYPOINT ["prometheus"]
