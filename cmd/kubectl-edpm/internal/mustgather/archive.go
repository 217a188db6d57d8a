package mustgather

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"
)

// Archive is where files go: a directory, or a compressed tar file.
type Archive interface {
	// Add writes a file. The name is relative, with slashes.
	Add(name string, content []byte) error
	// Close completes the archive.
	Close() error
}

// Dir is an archive that is a directory.
type Dir string

// Add writes a file that only its owner can read.
func (d Dir) Add(name string, content []byte) error {
	file := filepath.Join(string(d), filepath.FromSlash(path.Clean("/"+name)))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o600)
}

// Close has nothing to do.
func (Dir) Close() error { return nil }

type tarball struct {
	packed *gzip.Writer
	files  *tar.Writer
	prefix string
	at     time.Time
}

// NewTar returns an archive that is written to out as a tar file, compressed
// with gzip. All files are below the prefix and have the given time.
func NewTar(out io.Writer, prefix string, at time.Time) Archive {
	packed := gzip.NewWriter(out)
	return &tarball{packed, tar.NewWriter(packed), prefix, at}
}

func (t *tarball) Add(name string, content []byte) error {
	header := &tar.Header{Name: path.Join(t.prefix, path.Clean("/"+name)), Mode: 0o600, Size: int64(len(content)), ModTime: t.at}
	if err := t.files.WriteHeader(header); err != nil {
		return err
	}
	_, err := t.files.Write(content)
	return err
}

func (t *tarball) Close() error {
	if err := t.files.Close(); err != nil {
		return err
	}
	return t.packed.Close()
}
