// Package image writes container images without a container tool: a directory
// becomes a docker-archive of one layer, which containerd imports. The same
// directory always gives the same bytes. File capabilities are kept, since they
// are what lets a non-root process bind port 80 on a host's network.
package image
