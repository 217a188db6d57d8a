// Command krew packs the kubectl plugin for every platform and writes the
// manifest by which krew installs it.
//
//	go run ./hack/krew VERSION URL DIR
//
// VERSION is for example v1.2.3, URL is where the archives will be downloaded
// from, and DIR gets the archives and edpm.yaml.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: krew VERSION URL DIR")
		os.Exit(2)
	}
	if err := pack(os.Args[1], os.Args[2], os.Args[3], build); err != nil {
		fmt.Fprintln(os.Stderr, "krew:", err)
		os.Exit(1)
	}
}

// pack makes the archives and the manifest.
func pack(version, url, dir string, build func(target, string) ([]byte, error)) error {
	if err := check(version, url); err != nil {
		return err
	}
	license, err := os.ReadFile("LICENSE")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	sums := map[target]string{}
	for _, t := range targets {
		binary, err := build(t, version)
		if err != nil {
			return fmt.Errorf("building for %s/%s: %w", t.OS, t.Arch, err)
		}
		archive, err := archived(binary, license)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(archive)
		sums[t] = hex.EncodeToString(sum[:])
		if err := os.WriteFile(filepath.Join(dir, t.Archive()), archive, 0o644); err != nil {
			return err
		}
	}
	manifest, err := newManifest(version, url, sums)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "edpm.yaml"), manifest, 0o644)
}

// build returns the program for the target.
func build(t target, version string) ([]byte, error) {
	file, err := os.CreateTemp("", program)
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	file.Close()
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X main.version="+version, "-o", file.Name(), "./cmd/"+program)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.OS, "GOARCH="+t.Arch)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	return os.ReadFile(file.Name())
}

// archived packs the program and the licence. The same files make the same
// archive: they have no time of their own.
func archived(binary, license []byte) ([]byte, error) {
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	files := tar.NewWriter(packed)
	for _, f := range []struct {
		name    string
		mode    int64
		content []byte
	}{{program, 0o755, binary}, {"LICENSE", 0o644, license}} {
		header := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: time.Unix(0, 0)}
		if err := files.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := files.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := files.Close(); err != nil {
		return nil, err
	}
	if err := packed.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
