# Builds the image for x86-64 and ARM64, with provenance and a list of its packages (SBOM):
#
#     docker buildx bake -f deploy/docker-bake.hcl
#     VERSION=0.1.0 REGISTRY=ghcr.io/OWNER docker buildx bake -f deploy/docker-bake.hcl --push
#
# Both need a builder that can make several platforms: docker buildx create --use. hnswlib is compiled
# for each, under QEMU where the builder has no machine of that kind.

variable "VERSION" { default = "dev" }
variable "REGISTRY" { default = "" }

group "default" { targets = ["winnow"] }

target "winnow" {
  context    = "."
  dockerfile = "deploy/Dockerfile"
  platforms  = ["linux/amd64", "linux/arm64"]
  tags       = [REGISTRY == "" ? "winnow:${VERSION}" : "${REGISTRY}/winnow:${VERSION}"]
  attest     = ["type=provenance,mode=max", "type=sbom"]
  labels = {
    "org.opencontainers.image.title"    = "winnow"
    "org.opencontainers.image.version"  = VERSION
    "org.opencontainers.image.licenses" = "Apache-2.0"
  }
}
