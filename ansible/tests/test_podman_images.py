"""The module that pulls images, with a podman whose images and registry are files of the test."""

import json
import os
import unittest

import modules
import runs

# store and registry have a file for each name, with the ID of the image.
PODMAN = r"""cd %s
case "$1 $2" in
"image inspect") cat "store/$5" 2>/dev/null || { echo no such image >&2; exit 125; };;
"pull --quiet") for name; do :; done; [ ! -e flaky ] || { rm flaky; exit 1; }
  cp "registry/$name" "store/$name" 2>/dev/null || { echo "cannot pull with password=S3cret" >&2; exit 125; };;
"ps --all") cat used;;
"images --no-trunc") for file in store/*; do echo "sha256:$(cat $file) [${file#store/}]"; done; echo "dangling <none>" | sed "s/ .*/ []/";;
rmi*) shift; for name; do [ "$name" != stuck ] || exit 2; rm -f "store/$name"; done;;
esac"""


@runs.needs_ansible
class PodmanImagesTest(modules.ModuleTest):
    MODULE = "podman_images"

    def setUp(self):
        super().setUp()
        for name in ("a", "b", "c", "d", "stuck"):
            self.write("registry/" + name, "id-" + name)
        for name in ("b", "d", "stuck"):
            self.write("store/" + name, "id-" + name)
        self.write("used", "id-c\n")
        self.command("podman", PODMAN % self.directory)

    def arguments(self, **options):
        return dict({"names": ["a", "b"], "podman": self.path("bin", "podman"), "records": self.path("records"), "delay_seconds": 0}, **options)

    def run_it(self, **options):
        return self.done(**self.arguments(**options))["changes"]

    def store(self):
        return sorted(os.listdir(self.path("store")))

    def test_what_the_host_does_not_have_is_pulled(self):
        self.assertEqual((self.run_it(check=True), self.store()), (["pull a"], ["b", "d", "stuck"]))
        self.assertEqual((self.run_it(), self.store()), (["pull a"], ["a", "b", "d", "stuck"]))
        self.calls()
        self.assertEqual((self.run_it(), self.calls("podman pull")), ([], []))

    def test_always(self):
        self.write("store/b", "an-older-one")
        self.assertEqual(self.run_it(pull="always", pull_args=["--authfile=x"]), ["pull a", "pull b"])
        self.assertEqual(self.calls("podman pull"), ["podman pull --quiet --authfile=x a", "podman pull --quiet --authfile=x b"])
        self.assertEqual(self.run_it(pull="always"), [], "a pull that brings nothing new is no change")

    def test_a_registry_that_fails_once(self):
        self.write("flaky", "")
        self.assertEqual(self.run_it(), ["pull a"])

    def test_an_image_that_does_not_exist(self):
        self.assertEqual(self.failure(**self.arguments(names=["none"], retries=2)), "Pulling none failed: cannot pull with password=***")
        self.assertEqual(len(self.calls("podman pull")), 2)

    def test_what_nothing_uses_is_removed(self):
        self.write("store/c", "id-c")
        self.write("records/agent/1/service.json", json.dumps({"unit": "", "image": "id-d", "directories": []}))
        self.write("records/agent/2/service.json", "")  # as a loss of power leaves it
        self.write("store/old", "id-old")
        self.assertEqual((self.run_it(prune=True, check=True), self.store()), (
            ["pull a", "remove id-old", "remove id-stuck", "remove dangling"], ["b", "c", "d", "old", "stuck"]))
        self.assertEqual(self.run_it(prune=True), ["pull a", "remove id-old", "remove dangling"])
        self.assertEqual(self.store(), ["a", "b", "c", "d", "stuck"])
        self.assertNotIn("--force", "".join(self.calls("podman rmi")))

    def test_an_image_that_was_pulled_by_digest_is_removed_by_it(self):
        self.write("store/old@sha256:0a", "id-old")
        self.assertIn("remove id-old", self.run_it(prune=True))
        self.assertNotIn("old@sha256:0a", self.store())

    def test_nothing_is_removed_unless_asked_for(self):
        self.run_it()
        self.assertEqual(self.calls("podman rmi"), [])


if __name__ == "__main__":
    unittest.main()
