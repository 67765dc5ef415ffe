package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// capabilityRecord is the PAX record of a file's capabilities, as GNU tar
// names it and containerd reads it.
const capabilityRecord = "SCHILY.xattr.security.capability"

// entry is one file, directory or symbolic link of a layer.
type entry struct {
	name       string // slash-separated, relative to the root
	path       string // on this machine
	mode       fs.FileMode
	size       int64
	link       string // target of a symbolic link
	capability []byte // value of the attribute security.capability; nil for none
}

// walk lists the tree under root in lexical order, without root itself.
// capability returns the file capabilities of a regular file.
func walk(root string, capability func(path string) ([]byte, error)) ([]entry, error) {
	var entries []entry
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		e := entry{name: filepath.ToSlash(relative), path: path, mode: info.Mode()}
		switch {
		case info.Mode().IsRegular():
			e.size = info.Size()
			if e.capability, err = capability(path); err != nil {
				return fmt.Errorf("capabilities of %s: %w", path, err)
			}
		case info.IsDir():
		case info.Mode()&fs.ModeSymlink != 0:
			if e.link, err = os.Readlink(path); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%s is neither a file, a directory nor a symbolic link", path)
		}
		entries = append(entries, e)
		return nil
	})
	return entries, err
}

// fileCapability returns the attribute security.capability of a file, nil if
// it has none.
func fileCapability(path string) ([]byte, error) {
	value := make([]byte, 64) // the kernel's longest, version 3, is 24 bytes
	n, err := syscall.Getxattr(path, "security.capability", value)
	switch {
	case errors.Is(err, syscall.ENODATA), errors.Is(err, syscall.ENOTSUP):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return value[:n], nil
}

// writeLayer writes the entries as a layer. Owners, groups and times are left
// out, so that the same tree gives the same bytes wherever it was made.
func writeLayer(w io.Writer, entries []entry) error {
	layer := tar.NewWriter(w)
	for _, e := range entries {
		if err := writeEntry(layer, e); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	return layer.Close()
}

func writeEntry(layer *tar.Writer, e entry) (err error) {
	header := &tar.Header{
		Name: e.name, Mode: tarMode(e.mode), ModTime: time.Unix(0, 0), Format: tar.FormatPAX,
	}
	if e.capability != nil {
		header.PAXRecords = map[string]string{capabilityRecord: string(e.capability)}
	}
	switch {
	case e.mode.IsDir():
		header.Typeflag = tar.TypeDir
		header.Name += "/"
	case e.mode&fs.ModeSymlink != 0:
		header.Typeflag = tar.TypeSymlink
		header.Linkname = e.link
	default:
		header.Typeflag = tar.TypeReg
		header.Size = e.size
	}
	if err := layer.WriteHeader(header); err != nil {
		return err
	}
	if header.Typeflag != tar.TypeReg {
		return nil
	}
	file, err := os.Open(e.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = io.Copy(layer, file)
	return err
}

// tarMode returns the permission bits of mode as tar has them.
func tarMode(mode fs.FileMode) int64 {
	bits := int64(mode.Perm())
	for _, special := range []struct {
		mode fs.FileMode
		bit  int64
	}{{fs.ModeSetuid, 0o4000}, {fs.ModeSetgid, 0o2000}, {fs.ModeSticky, 0o1000}} {
		if mode&special.mode != 0 {
			bits |= special.bit
		}
	}
	return bits
}
