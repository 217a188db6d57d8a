// Command bundle makes the OLM bundle of edpm-operators from what kustomize makes of
// config/olm, which it reads from its standard input: see hack/bundle.sh.
//
// It is a module of its own, so that the types of the operator framework stay out
// of the dependencies of the manager.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/util/validation"
)

// options are what the bundle does not take from config.
type options struct {
	out       string
	operators string
	pkg       string
	channel   string
	version   string
	replaces  string
	image     string
	runner    string
	images    map[string]string // by variable
	icon      string
	scorecard string
}

func main() {
	opts := options{images: relatedImagesOf(os.Environ())}
	opts.bind(flag.CommandLine)
	flag.Parse()
	if err := run(opts, os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

// relatedImagesOf returns the images that the environment names for the manager.
func relatedImagesOf(environ []string) map[string]string {
	images := map[string]string{}
	for _, entry := range environ {
		if name, image, _ := strings.Cut(entry, "="); strings.HasPrefix(name, relatedImage) {
			images[name] = image
		}
	}
	return images
}

func (o *options) bind(fs *flag.FlagSet) {
	fs.StringVar(&o.out, "out", "bundle", "directory to write")
	fs.StringVar(&o.operators, "operators", "", "operators of the bundle, separated by commas")
	fs.StringVar(&o.pkg, "package", "edpm-operators", "name of the package")
	fs.StringVar(&o.channel, "channel", "candidate", "channel of the package")
	fs.StringVar(&o.version, "version", "", "version, such as 0.1.0")
	fs.StringVar(&o.replaces, "replaces", "", "version that this one replaces; empty for the first")
	fs.StringVar(&o.image, "image", "", "image of the manager")
	fs.StringVar(&o.runner, "runner", "", "execution environment; empty leaves that of config/olm")
	fs.StringVar(&o.icon, "icon", "", "icon, an SVG file")
	fs.StringVar(&o.scorecard, "scorecard", "", "configuration of operator-sdk scorecard")
}

// maxPackage is how long the name of a package may be: OLM makes a Service out of
// it and of "-manager-service", whose name is a DNS label.
const maxPackage = validation.DNS1123LabelMaxLength - len("-manager-service")

// check returns an error for each option that no bundle could be made with.
func (o *options) check() error {
	var errs []error
	version, err := semver.Parse(o.version)
	if err != nil {
		errs = append(errs, fmt.Errorf("-version %q: %w: give one such as 0.1.0", o.version, err))
	}
	if o.replaces != "" {
		if before, err := semver.Parse(o.replaces); err != nil || before.GTE(version) {
			errs = append(errs, fmt.Errorf("-replaces %q: give a version before %s, or none", o.replaces, o.version))
		}
	}
	if problems := validation.IsDNS1123Label(o.pkg); len(problems) > 0 || len(o.pkg) > maxPackage {
		errs = append(errs, fmt.Errorf("-package %q: give a name of at most %d lower case letters, digits and hyphens", o.pkg, maxPackage))
	}
	for name, value := range map[string]string{"operators": o.operators, "image": o.image, "channel": o.channel} {
		if value == "" {
			errs = append(errs, fmt.Errorf("-%s is empty", name))
		}
	}
	return errors.Join(errs...)
}

// run writes the bundle for what it reads from config.
func run(o options, config io.Reader) error {
	if err := o.check(); err != nil {
		return err
	}
	icon, err := os.ReadFile(o.icon)
	if err != nil {
		return fmt.Errorf("reading the icon: %w", err)
	}
	scorecard, err := os.ReadFile(o.scorecard)
	if err != nil {
		return fmt.Errorf("reading the configuration of scorecard: %w", err)
	}
	in, err := readInput(config, strings.Split(o.operators, ","))
	if err != nil {
		return err
	}
	objects, err := in.manifests(o, icon)
	if err != nil {
		return err
	}
	if trimmed, err := fit(objects, inlineLimit); err != nil {
		return err
	} else if trimmed {
		fmt.Fprintf(os.Stderr, "bundle: more than %d bytes: the schemas have no descriptions\n", inlineLimit)
	}
	return write(o, objects, scorecard)
}
