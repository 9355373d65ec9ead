# SPDX-License-Identifier: Apache-2.0
# docker build -t gpuscale:0.2.0 .                                        the controller
# docker build -t gpuscale-exporter:0.2.0 --target exporter .             the exporter
# The images hold what scripts/image puts into a root filesystem and nothing else (no shell, no package manager): the program, its
# libraries, CA certificates, time zones, its bill of materials. The only thing fetched is Debian: the base image, best given
# with a digest (--build-arg DEBIAN=debian@sha256:..), the packages that scripts/deps names, and the source of curl (scripts/image-curl).
ARG DEBIAN=debian:bookworm-slim
FROM ${DEBIAN} AS build
WORKDIR /src
COPY scripts/deps scripts/deps
RUN scripts/deps build image
COPY scripts/image-curl scripts/image-curl
RUN scripts/image-curl own
COPY . .
ARG SOURCE_DATE_EPOCH=0
RUN make IMAGE_CURL=own sbom && for p in gpuscale gpuscale-exporter; do install -D -m 644 build/image/$p.spdx.json build/image/$p.rootfs/usr/share/sbom/$p.spdx.json; done

FROM scratch AS exporter
COPY --from=build /src/build/image/gpuscale-exporter.rootfs/ /
USER 65532:65532
EXPOSE 9400
ENTRYPOINT ["/usr/bin/gpuscale-exporter"]

FROM scratch AS controller
COPY --from=build /src/build/image/gpuscale.rootfs/ /
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/usr/bin/gpuscale"]
