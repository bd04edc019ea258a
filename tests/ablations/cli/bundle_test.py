# SPDX-License-Identifier: Apache-2.0
"""A bundle checks itself: it gives the same results elsewhere, and names what was changed."""

import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

import record_files
from fixture import PROGRAM, ROOT, FolderTest

DATA = ROOT / "reports" / "data"
DESIGN = "hopper_tiles"  # few arms at few shapes: its page and pictures are made quickly


def call(*arguments, **keywords):
    return subprocess.run([str(argument) for argument in arguments], capture_output=True, text=True,
                          timeout=250, check=False, **keywords)


class BundleTest(FolderTest):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        # As folders, whose files can be changed one by one; pack_cli_test bundles a pack.
        cls.record = cls.unpacked(record_files.records(DATA, "run.json", f"{DESIGN}-")[-1])
        # The smallest: eight times its pictures are drawn.
        cls.profile = cls.unpacked(min(record_files.records(DATA, "profile.json", "profile-"),
                                       key=lambda record: record.path.stat().st_size))
        cls.tarball = cls.folder / "one.tar.gz"
        cls.made = cls.pack(cls.tarball)
        assert cls.made.returncode == 0, cls.made.stderr
        # Elsewhere: another folder, and none of this tree's files.
        cls.elsewhere = cls.folder / "elsewhere"
        with tarfile.open(cls.tarball) as tar:
            tar.extractall(cls.elsewhere)
        cls.bundle = cls.elsewhere / "one"

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @classmethod
    def unpacked(cls, record):
        folder = cls.folder / "data" / record.name
        with record.folder() as files:
            shutil.copytree(files, folder)
        # What a record's verdicts quote lies beside it: the newest, of which they need no sample.
        micro = record_files.open_record(max(record.path.parent.glob("micro-*")))
        if not (folder.parent / micro.name).exists():
            with micro.folder() as files:
                shutil.copytree(files, folder.parent / micro.name,
                                ignore=shutil.ignore_patterns("micro_raw.*"))
        return folder

    @classmethod
    def pack(cls, out):
        return call(PROGRAM, "bundle", f"--record={cls.record},{cls.profile}", f"--out={out}",
                    f"--python={sys.executable}")

    def replay(self, bundle, *arguments):
        return call(sys.executable, bundle / "replay.py", *arguments, cwd="/",
                    env={"PATH": os.environ["PATH"], "HOME": str(self.folder),
                         "MPLCONFIGDIR": os.environ.get("MPLCONFIGDIR", str(self.folder))})

    def copy(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        bundle = pathlib.Path(folder.name) / "copy"
        shutil.copytree(self.bundle, bundle, symlinks=True)
        return bundle

    def assert_named(self, bundle, complaint, *arguments):
        done = self.ends(self.replay(bundle, *arguments), 1)
        self.assertEqual(done.stdout.strip(), complaint)

    def test_unpacked_elsewhere_it_gives_the_same_results(self):
        manifest = json.loads((self.bundle / "manifest.json").read_text())
        digest = hashlib.sha256((self.bundle / "manifest.json").read_bytes()).hexdigest()
        self.assertIn(f"manifest: {digest}", self.made.stdout)
        done = self.ends(self.replay(self.bundle, f"--manifest_sha256={digest}"),
                         out="of 2 records come out the same, byte for byte")
        self.assertNotIn("left out", done.stdout)
        # It leaves nothing behind.
        self.assertEqual({str(path.relative_to(self.bundle))
                          for path in self.bundle.rglob("*") if path.is_file()},
                         {*manifest["files"], "manifest.json"})
        expected = self.bundle / "expected" / self.record.name
        summary = hashlib.sha256((expected / "summary.json").read_bytes()).hexdigest()
        self.assertRegex((DATA / "summaries.sha256").read_text(),
                         rf"(?m)^{summary} .*{self.record.name}$")
        self.assertIn(f"{DESIGN}.md", {path.name for path in expected.iterdir()})
        # The microbenchmarks that the verdicts quote came along, though nobody named them.
        quoted = json.loads((expected / "summary.json").read_text())["provenance"]["micro"]
        self.assertIn(f"data/{quoted['run_id']}/micro.json", manifest["files"])
        self.assertIn(f"data/{self.record.name}/samples.jsonl", manifest["files"])

    def test_verify_says_the_same_from_outside_and_runs_nothing_of_it(self):
        bundle = self.copy()
        digest = hashlib.sha256((bundle / "manifest.json").read_bytes()).hexdigest()
        self.ends(call(PROGRAM, "verify", self.tarball, f"--manifest_sha256={digest}",
                       f"--python={sys.executable}"), out="come out the same, byte for byte")
        # Rebuilt around a program and a script of someone else.
        ran = self.folder / "ran"
        for name in "bin/warpledger", "replay.py":
            (bundle / name).write_text(f"#!/bin/sh\ntouch {ran}\n")
            self.promise(bundle, name)
        done = self.ends(call(PROGRAM, "verify", bundle, f"--python={sys.executable}"),
                         out=("Not run, and not the one that checks: bin/warpledger",
                              "Not run, and not the one that checks: replay.py"))
        self.assertFalse(ran.exists(), done.stdout)
        self.ends(call(PROGRAM, "verify", bundle, f"--manifest_sha256={digest}"), 1,
                  out="changed: manifest.json")

    def test_verify_names_what_differs_and_what_a_tarball_must_not_hold(self):
        bundle = self.copy()
        name = f"expected/{self.record.name}/summary.json"
        (bundle / name).write_text("{}")
        self.ends(call(PROGRAM, "verify", bundle), 1, out=f"changed: {name}")
        self.promise(bundle, name)
        self.ends(call(PROGRAM, "verify", bundle), 1,
                  out=f"differs: {self.record.name}/summary.json")
        for link in True, False:
            with tarfile.open(self.folder / "bad.tar.gz", "w:gz") as tar:
                member = tarfile.TarInfo("one/link" if link else "one/../../outside")
                member.type = tarfile.SYMTYPE if link else tarfile.REGTYPE
                member.linkname = "/etc/passwd" if link else ""
                tar.addfile(member)
            self.ends(call(PROGRAM, "verify", self.folder / "bad.tar.gz"), 1, out="unknown: 'one/")
        self.ends(call(PROGRAM, "verify", self.folder / "none.tar.gz"), 2, err="No such file")
        self.ends(call(PROGRAM, "verify"), 2, err="name one bundle")

    @staticmethod
    @contextlib.contextmanager
    def manifest(bundle):
        """Its content, written back with what was changed."""
        manifest = json.loads((bundle / "manifest.json").read_text())
        yield manifest
        (bundle / "manifest.json").write_text(json.dumps(manifest))

    def promise(self, bundle, name):
        """What the manifest promises of a file becomes what the file is."""
        content = (bundle / name).read_bytes()
        with self.manifest(bundle) as manifest:
            manifest["files"][name] = {"sha256": hashlib.sha256(content).hexdigest(),
                                       "bytes": len(content)}

    def test_says_that_pictures_are_left_out(self):
        self.assertNotIn("left out", self.made.stderr)
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            (folder / "matplotlib.py").write_text("raise ImportError\n", encoding="utf-8")
            done = call(PROGRAM, "bundle", f"--record={self.record}", f"--out={folder / 'b.tar.gz'}",
                        f"--python={sys.executable}",
                        env={**os.environ, "PYTHONPATH":
                             f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"})
            self.ends(done, err="Pictures are left out: ")
            with tarfile.open(folder / "b.tar.gz") as packed:
                self.assertEqual([name for name in packed.getnames() if name.endswith(".svg")], [])

    def test_it_needs_nothing_of_the_tree_that_it_was_made_in(self):
        bundle = self.copy()
        for micro in (bundle / "data").glob("micro-*"):
            shutil.rmtree(micro)
        with self.manifest(bundle) as manifest:
            manifest["files"] = {name: file for name, file in manifest["files"].items()
                                 if not name.startswith("data/micro-")}
            manifest["environment"]["matplotlib"] = ""  # no picture is drawn
        # The tree still holds these microbenchmarks; the packed program must not find them.
        self.ends(self.replay(bundle), 1, out=f"differs: {self.record.name}/summary.json")

    def test_the_same_inputs_give_the_same_tarball(self):
        again = self.folder / "again" / "one.tar.gz"
        self.assertEqual(self.pack(again).returncode, 0)
        self.assertEqual(again.read_bytes(), self.tarball.read_bytes())

    def test_a_changed_byte_of_any_kind_of_file_is_named(self):
        run = self.record.name
        for name in (f"data/{run}/samples.jsonl", f"data/{run}/run.json",
                     f"data/{run}/correctness.jsonl", f"data/{run}/codegen.json",
                     f"data/{self.profile.name}/profiles.jsonl", f"expected/{run}/summary.json",
                     f"expected/{run}/{DESIGN}.md", f"expected/{run}/{DESIGN}_effects.svg",
                     "bin/warpledger", "share/warpledger/plots/style.py", "replay.py"):
            with self.subTest(name=name):
                bundle = self.copy()
                content = bytearray((bundle / name).read_bytes())
                # In a comment of replay.py, so that it still runs.
                at = content.index(b"Needs Python") if name == "replay.py" else len(content) // 2
                content[at] ^= 1
                (bundle / name).write_bytes(content)
                self.assert_named(bundle, f"changed: {name}")

    def test_missing_and_unknown_files_are_named(self):
        bundle = self.copy()
        (bundle / "expected" / self.record.name / f"{DESIGN}.md").unlink()
        self.assert_named(bundle, f"missing: expected/{self.record.name}/{DESIGN}.md")
        bundle = self.copy()
        (bundle / "data" / "extra.json").write_text("{}")
        self.assert_named(bundle, "unknown: data/extra.json")

    def test_a_link_is_no_file(self):
        bundle = self.copy()
        name = f"data/{self.record.name}/run.json"
        (bundle / name).unlink()
        (bundle / name).symlink_to(self.record / "run.json")
        self.assert_named(bundle, f"missing: {name}")

    def test_a_changed_manifest_is_named(self):
        digest = hashlib.sha256((self.bundle / "manifest.json").read_bytes()).hexdigest()
        bundle = self.copy()
        with self.manifest(bundle) as manifest:
            manifest["environment"]["python"] = "2.7"
        self.assert_named(bundle, "changed: manifest.json", f"--manifest_sha256={digest}")
        (bundle / "manifest.json").write_text("{")
        self.ends(self.replay(bundle), 1, out="changed: manifest.json")

    def test_results_that_do_not_come_out_are_named_even_when_the_manifest_fits(self):
        bundle = self.copy()
        name = f"expected/{self.record.name}/{DESIGN}.md"
        forged = (bundle / name).read_bytes().replace(b"ADOPT", b"ADORE", 1)
        (bundle / name).write_bytes(forged)
        self.promise(bundle, name)
        with self.manifest(bundle) as manifest:
            manifest["environment"]["matplotlib"] = ""  # no picture is drawn
        self.assert_named(bundle, f"differs: {self.record.name}/{DESIGN}.md")

    def test_a_picture_is_named_where_it_shows_something_else_and_not_for_its_last_digits(self):
        bundle = self.copy()
        for picture, moved in ((f"{DESIGN}_matrix.svg", 0.01), (f"{DESIGN}_effects.svg", 1)):
            name = f"expected/{self.record.name}/{picture}"
            drawn = (bundle / name).read_text()
            shifted = re.sub(r'(<use [^>]*x=")([\d.]+)',
                             lambda found, moved=moved: f"{found[1]}{float(found[2]) + moved:.2f}",
                             drawn)
            self.assertNotEqual(shifted, drawn)
            (bundle / name).write_text(shifted)
            self.promise(bundle, name)
        self.assert_named(bundle, f"differs: {self.record.name}/{DESIGN}_effects.svg")

    def test_what_is_no_record_is_refused_and_nothing_is_written(self):
        out = self.folder / "none.tar.gz"
        done = call(PROGRAM, "bundle", f"--record={ROOT / 'plots'}", f"--out={out}",
                    f"--python={sys.executable}")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("is no record", done.stderr)
        self.ends(call(PROGRAM, "bundle", f"--record={self.folder / 'nowhere'}", f"--out={out}"), 2)
        self.assertFalse(out.exists())
