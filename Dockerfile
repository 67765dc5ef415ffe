# Headgate's image, for those who build images of Dockerfiles. `make image` makes
# the same without a container tool, and for all platforms at once: docs/image.md.
#
#   docker build --build-arg VERSION=$(git describe --tags --always) \
#     --build-arg REVISION=$(git rev-parse HEAD) --build-arg SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) \
#     -t ghcr.io/headgate/headgate:$(git describe --tags --always) .

ARG GO_IMAGE=docker.io/library/golang:1.26
# Another one: --build-arg BASE_IMAGE=gcr.io/distroless/static-debian12:nonroot
ARG BASE_IMAGE=scratch

# Always on the builder's own platform: Go builds for the other ones, too.
FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
ARG TARGETPLATFORM
ARG VERSION=dev
ARG REVISION
ARG SOURCE_DATE_EPOCH=0
WORKDIR /src
COPY go.mod go.sum ./
COPY test/image/go.mod test/image/go.sum test/image/
RUN go mod download && go -C test/image mod download
COPY . .
# The program with its capability, its description and the licences' texts.
RUN cd test/image && SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH} \
    go run . -root /image -platforms "${TARGETPLATFORM}" -version "${VERSION}" -revision "${REVISION}"

FROM ${BASE_IMAGE}
ARG VERSION=dev
ARG REVISION
LABEL org.opencontainers.image.title="Headgate" \
      org.opencontainers.image.description="An edge ingress controller for the Gateway API" \
      org.opencontainers.image.source="https://github.com/headgate/headgate" \
      org.opencontainers.image.documentation="https://github.com/headgate/headgate/tree/main/docs" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /image /
ENV PATH=/
WORKDIR /
USER 65532:65532
ENTRYPOINT ["/headgate"]
