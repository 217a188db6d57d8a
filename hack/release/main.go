// Command release writes what a release says of itself: what is in the programs,
// under which licences, and what of the configuration is not pinned.
//
//	go -C hack/release run . inventory DIR VERSION PROGRAM...   sbom.cdx.json, licences.csv, licences.txt
//	go -C hack/release run . pinned FILE...                     images that are named by tag
//	go -C hack/release run . notes CHANGELOG VERSION            what changed, on standard output
//
// It is a module of its own, so that nothing of it enters the manager's.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const usage = "usage: release inventory DIR VERSION PROGRAM... | pinned FILE... | notes CHANGELOG VERSION"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) > 3 && args[0] == "inventory":
		return inventory(args[1], args[2], args[3:])
	case len(args) > 1 && args[0] == "pinned":
		return pinned(args[1:])
	case len(args) == 3 && args[0] == "notes":
		return notes(args[1], args[2])
	}
	return errors.New(usage)
}

// inventory writes which modules are in the programs, and their licences. A
// licence that is not allowed is an error, after all has been written.
func inventory(dir, version string, programs []string) error {
	modules, err := read(programs)
	if err != nil {
		return err
	}
	refused, err := license(modules)
	if err != nil {
		return err
	}
	sbom, err := bom(version, modules)
	if err != nil {
		return err
	}
	for name, text := range map[string]string{"sbom.cdx.json": sbom, "licences.csv": table(modules), "licences.txt": texts(modules)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return refused
}

// pinned writes on standard output the images in the files that are not named by
// digest, and returns an error if there are any.
func pinned(files []string) error {
	count := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		found, err := byTag(text)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, image := range found {
			fmt.Printf("not pinned by a digest: %s: %s\n", filepath.Base(file), image)
		}
		count += len(found)
	}
	if count > 0 {
		return fmt.Errorf("%d images are not pinned by a digest", count)
	}
	return nil
}

func notes(changelog, version string) error {
	text, err := os.ReadFile(changelog)
	if err != nil {
		return err
	}
	section, err := section(string(text), strings.TrimPrefix(version, "v"))
	if err != nil {
		return fmt.Errorf("%s: %w", changelog, err)
	}
	_, err = os.Stdout.WriteString(section)
	return err
}
