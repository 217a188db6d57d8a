package mustgather

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Names come from objects and pods that anybody may have made: see docs/security.md.
var evilNames = []string{"../../etc/cron.d/x", "/etc/passwd", "namespaces/a/logs/../../../../x.log", "..", "a/..", "namespaces/a/b:c"}

func TestNoFileLeavesTheDirectory(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "out", "in")
	for _, name := range evilNames {
		_ = Dir(dir).Add(name, []byte("evil")) // a directory cannot be written; others are
	}
	err := filepath.WalkDir(parent, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !strings.HasPrefix(path, dir+"/") {
			t.Errorf("%s is outside %s", path, dir)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "etc", "passwd")); err != nil {
		t.Errorf("what can be written should be: %v", err)
	}
}

func TestNoEntryLeadsOutOfTheArchive(t *testing.T) {
	out := &bytes.Buffer{}
	archive := NewTar(out, "edpm-must-gather", time.Unix(0, 0))
	for _, name := range evilNames {
		if err := archive.Add(name, []byte("evil")); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	packed, err := gzip.NewReader(out)
	if err != nil {
		t.Fatal(err)
	}
	files := tar.NewReader(packed)
	for n := 0; ; n++ {
		header, err := files.Next()
		if err == io.EOF && n == len(evilNames) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if !filepath.IsLocal(header.Name) || !strings.HasPrefix(header.Name, "edpm-must-gather") {
			t.Errorf("entry %q leads out of the archive", header.Name)
		}
	}
}
