package cluster

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/edpm-operators/edpm-operators/test/progress"
)

// imageTag is what the host's image of that name is called.
func imageTag(name string) string { return "localhost/" + name + ":latest" }

// buildImage builds an image, or finds it built.
func (l *Lab) buildImage(ctx context.Context, name string, log io.Writer) error {
	return progress.Command(filepath.Join(l.Images, "build.sh"), name)(ctx, log)
}

// archives builds the named images, or finds them built, and returns the paths
// of their archives in the same order.
func (l *Lab) archives(ctx context.Context, names []string) ([]string, error) {
	out, err := l.imageScript(ctx, "build.sh", names...)
	if err != nil {
		return nil, err
	}
	paths := strings.Fields(out)
	if len(paths) != len(names) {
		return nil, fmt.Errorf("build.sh %s printed %d paths: %q", strings.Join(names, " "), len(paths), out)
	}
	return paths, nil
}

// imageScript runs a script of test/lab/images.
func (l *Lab) imageScript(ctx context.Context, script string, args ...string) (string, error) {
	return command(ctx, filepath.Join(l.Images, script), args...)
}

// importImages makes the images of docker archives known to pods.
func (l *Lab) importImages(ctx context.Context, archives []string) error {
	for _, archive := range archives {
		if err := l.importOnce(ctx, archive); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) importOnce(ctx context.Context, archive string) error {
	return l.once("containerd", archive, func() error {
		begin := time.Now()
		_, err := l.ctr(ctx, "images", "import", archive)
		if err != nil && strings.Contains(err.Error(), "does not exist: not found") {
			// containerd was collecting a layer of the image of that name before.
			_, err = l.ctr(ctx, "images", "import", archive)
		}
		if err != nil {
			return err
		}
		l.logf("Imported %s for pods (%.1fs)", filepath.Base(archive), time.Since(begin).Seconds())
		return nil
	})
}

// once calls action unless it succeeded before for the same images in the same
// store. What an archive holds, its manifest says: dates of files do not.
func (l *Lab) once(store, archive string, action func() error) error {
	m, err := readManifest(archive)
	if err != nil {
		return err
	}
	stamp := l.importStamp(store, m.tags)
	if have, err := os.ReadFile(stamp); err == nil && string(have) == m.text {
		return nil
	}
	if err := action(); err != nil {
		return err
	}
	return os.WriteFile(stamp, []byte(m.text), 0o644)
}

// importStamp names the file that remembers what tags mean in store.
func (l *Lab) importStamp(store string, tags []string) string {
	key := sha256.Sum256([]byte(store + " " + strings.Join(tags, " ")))
	return l.path("images", hex.EncodeToString(key[:8])+".imported")
}

// manifest is that of a docker archive: the digests of configurations and
// layers, and the names of the images.
type manifest struct {
	text string
	tags []string
}

func readManifest(archive string) (manifest, error) {
	f, err := os.Open(archive)
	if err != nil {
		return manifest{}, err
	}
	defer f.Close()
	files := tar.NewReader(f) // skips layers by seeking
	for {
		header, err := files.Next()
		if err != nil {
			return manifest{}, fmt.Errorf("looking for manifest.json in %s: %w", archive, err)
		}
		if header.Name == "manifest.json" {
			return parseManifest(files)
		}
	}
}

func parseManifest(r io.Reader) (manifest, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return manifest{}, err
	}
	var images []struct{ RepoTags []string }
	if err := json.Unmarshal(text, &images); err != nil {
		return manifest{}, fmt.Errorf("reading manifest.json: %w", err)
	}
	m := manifest{text: string(text)}
	for _, image := range images {
		m.tags = append(m.tags, image.RepoTags...)
	}
	return m, nil
}

// Load imports docker archives into the running lab.
func (l *Lab) Load(ctx context.Context, archives []string) error {
	if _, alive := l.procs.Alive("containerd"); !alive {
		return fmt.Errorf("%w with a kubelet", errNotRunning)
	}
	return l.importImages(ctx, archives)
}
