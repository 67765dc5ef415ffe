// Package e2e follows a user's way on a real node: the image is imported, the
// chart installed, the README's quick start run word by word, the release
// upgraded under load, its pod killed, the API server stopped, the release
// uninstalled. The tests need root: the node is made of namespaces.
package e2e
