package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
)

// leaks are the places where secrets were found, of all stories: what was there
// for a while must not have been.
var leaks []string

func noteLeaks(place, text string) {
	secretWords.Lock()
	defer secretWords.Unlock()
	for word, of := range secretWords.words {
		for _, form := range []string{word, base64.StdEncoding.EncodeToString([]byte(word))} {
			if strings.Contains(text, form) {
				leaks = append(leaks, fmt.Sprintf("%s is in %s", of, place))
			}
		}
	}
	slices.Sort(leaks)
	leaks = slices.Compact(leaks)
}

// collectLeaks looks for secrets everywhere outside Secrets, and returns the
// number of places that it looked at.
func collectLeaks(ctx context.Context) int {
	GinkgoHelper()
	places := searchFiles(cluster.PodLogs()) + searchFiles(filepath.Join(filepath.Dir(cluster.PodLogs()), "logs"))
	text, _ := manager.Logs(ctx)
	noteLeaks("the log of the manager", text)
	for _, host := range allHosts() {
		out, _ := host.Console(ctx, "cat "+novaLog+"* 2>/dev/null; journalctl --quiet --output=cat")
		noteLeaks("the logs of host "+host.Name, out)
	}
	return places + searchObjects(ctx)
}

func searchFiles(root string) int {
	places := 0
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			text, _ := os.ReadFile(path)
			noteLeaks("file "+path, string(text))
			places++
		}
		return nil
	})
	return places
}

// searchObjects looks at every object of every kind but Secret.
func searchObjects(ctx context.Context) int {
	GinkgoHelper()
	finder, err := discovery.NewDiscoveryClientForConfig(cluster.Config)
	Expect(err).NotTo(HaveOccurred())
	objects, err := dynamic.NewForConfig(cluster.Config)
	Expect(err).NotTo(HaveOccurred())
	lists, err := finder.ServerPreferredResources()
	Expect(err).NotTo(HaveOccurred())
	places := 0
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		Expect(err).NotTo(HaveOccurred())
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || (gv.Group == "" && r.Name == "secrets") {
				continue
			}
			all, err := objects.Resource(gv.WithResource(r.Name)).List(ctx, metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred(), r.Name)
			for _, obj := range all.Items {
				text, err := json.Marshal(obj.Object)
				Expect(err).NotTo(HaveOccurred())
				noteLeaks(fmt.Sprintf("%s %s/%s", obj.GetKind(), obj.GetNamespace(), obj.GetName()), string(text))
				places++
			}
		}
	}
	return places
}

// secretsStories tell that what is secret is in Secrets, and on its hosts, only.
// It runs last: it looks at what all the others left behind.
func secretsStories() {
	It("appear in the search if they are anywhere else", func() {
		kept := leaks
		DeferCleanup(func() { leaks = kept })
		word := newSecret("a test of this test")
		for _, text := range []string{"x " + word + " y", base64.StdEncoding.EncodeToString([]byte(strings.TrimPrefix(word, "s3cr$t-")))} {
			leaks = nil
			noteLeaks("a place", text)
			Expect(leaks).To(ConsistOf("a test of this test is in a place"))
		}
	})

	It("appear in no log, event, condition, ConfigMap, Job or Pod", func(ctx SpecContext) {
		Expect(collectLeaks(ctx)).To(BeNumerically(">", 100), "there is hardly anything to look at")
		Expect(leaks).To(BeEmpty())
	}, SpecTimeout(6*time.Minute))
}
