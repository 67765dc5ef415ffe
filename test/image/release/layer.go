package release

import (
	"archive/tar"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// User is the user and group that the image runs as, distroless's "nonroot".
const User = 65532

// Where things are in the image.
const (
	programPath = "headgate"
	sbomPath    = "usr/share/doc/headgate/sbom.spdx.json"
	noticesPath = "usr/share/doc/headgate/licenses.txt"
)

const (
	passwd = "root:x:0:0:root:/:/sbin/nologin\n" +
		"nobody:x:65534:65534:nobody:/:/sbin/nologin\n" +
		"nonroot:x:65532:65532:nonroot:/:/sbin/nologin\n"
	group = "root:x:0:\n" +
		"nobody:x:65534:\n" +
		"nonroot:x:65532:\n"
)

const (
	capabilityAttribute = "security.capability"
	capabilityRecord    = "SCHILY.xattr." + capabilityAttribute // as GNU tar and container runtimes name it
)

// bindService is cap_net_bind_service=p as the kernel stores it: revision 2,
// no effective bit, then permitted and inheritable, twice 32 bits each. Why
// there is no effective bit: DESIGN.md.
var bindService = []byte{0, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

// file is a regular file of the image.
type file struct {
	name       string // relative to the root
	mode       int64
	content    []byte
	capability []byte // value of the attribute security.capability, nil for none
}

// contents returns the image's files, by name.
func contents(program, bom, notices []byte) []file {
	return []file{
		{name: "etc/group", mode: 0o644, content: []byte(group)},
		{name: "etc/passwd", mode: 0o644, content: []byte(passwd)},
		{name: programPath, mode: 0o755, content: program, capability: bindService},
		{name: noticesPath, mode: 0o644, content: notices},
		{name: sbomPath, mode: 0o644, content: bom},
	}
}

// writeLayer writes files and the directories that they are in, all of root's
// and with one time.
func writeLayer(w io.Writer, files []file, created time.Time) error {
	archive := tar.NewWriter(w)
	var made []string
	for _, f := range files {
		for _, dir := range parents(f.name) {
			if slices.Contains(made, dir) {
				continue
			}
			made = append(made, dir)
			h := &tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: created, Format: tar.FormatPAX}
			if err := archive.WriteHeader(h); err != nil {
				return err
			}
		}
		h := &tar.Header{
			Typeflag: tar.TypeReg, Name: f.name, Size: int64(len(f.content)), Mode: f.mode, ModTime: created, Format: tar.FormatPAX,
		}
		if f.capability != nil {
			h.PAXRecords = map[string]string{capabilityRecord: string(f.capability)}
		}
		if err := archive.WriteHeader(h); err != nil {
			return err
		}
		if _, err := archive.Write(f.content); err != nil {
			return err
		}
	}
	return archive.Close()
}

// parents returns the directories above name, the topmost first.
func parents(name string) []string {
	var dirs []string
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	return dirs
}

// writeRoot writes files below the directory root, with their capabilities,
// which needs root or CAP_SETFCAP.
func writeRoot(root string, files []file, created time.Time) error {
	for _, f := range files {
		name := filepath.Join(root, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, f.content, os.FileMode(f.mode)); err != nil {
			return err
		}
		if err := os.Chmod(name, os.FileMode(f.mode)); err != nil { // WriteFile's is subject to the umask
			return err
		}
		if f.capability != nil {
			if err := syscall.Setxattr(name, capabilityAttribute, f.capability, 0); err != nil {
				return fmt.Errorf("set the capability of %s: %w; it takes root, and a file system with extended attributes", name, err)
			}
		}
	}
	for _, f := range files { // the directories at last: a new file changes them
		for _, name := range append(parents(f.name), f.name) {
			if err := os.Chtimes(filepath.Join(root, filepath.FromSlash(name)), created, created); err != nil {
				return err
			}
		}
	}
	return nil
}
