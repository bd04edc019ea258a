# SPDX-License-Identifier: Apache-2.0
"""How much may lie in the repository, and how tall a picture may be."""

import re
import subprocess

import house_tree
from fixture import ROOT, FolderTest

# {folder: the most megabytes (of 10^6 bytes) that its files may have together}
LIMITS_MB = {
    "reports/h200": 12,
}
WORKING_TREE_MB = 60  # all tracked files, in megabytes of 10^6 bytes
CLONE_MB = 25  # what `git clone --depth 1` moves
MAX_HEIGHT_OF_WIDTH = 3  # of a picture: a taller one is scrolled past its legend


def too_large(root, limits_mb):
    violations = []
    for folder, limit in limits_mb.items():
        files = house_tree.files(root / folder)
        size = sum((root / folder / path).stat().st_size for path in files) / 1e6
        if not files:
            violations.append(f"{folder}: has no file, and a limit of {limit} MB")
        elif size > limit:
            violations.append(f"{folder}: {size:.1f} MB; it may have {limit} MB")
    return violations


def git(*arguments, **options):
    return subprocess.run(["git", "-C", str(ROOT), *arguments], check=True,
                          capture_output=True, **options).stdout


def clone_mb():
    """The size of a pack of HEAD's tree, and of nothing before it."""
    objects = git("rev-list", "--objects", "--no-walk", "HEAD^{tree}").splitlines()
    names = b"".join(line.split()[0] + b"\n" for line in objects)
    return len(git("pack-objects", "--stdout", "-q", input=names)) / 1e6


def too_tall(root):
    violations = []
    for path in house_tree.files(root, (".svg",)):
        with open(root / path, encoding="utf-8") as file:
            size = re.search(r'<svg [^>]*width="([\d.]+)pt" height="([\d.]+)pt"', file.read(4000))
        if size is None:
            violations.append(f"{path}: its size is not stated in points")
        elif float(size[2]) > MAX_HEIGHT_OF_WIDTH * float(size[1]):
            violations.append(f"{path}: {float(size[2]) / float(size[1]):.2f} times as tall as wide; "
                              f"it may be {MAX_HEIGHT_OF_WIDTH} times: cut it")
    return violations


class TheTree(FolderTest):
    def test_holds_no_more_than_its_limits(self):
        self.assertEqual(too_large(ROOT, LIMITS_MB), [])

    def test_travels_lightly(self):
        if not (ROOT / ".git").exists():
            self.skipTest("no git checkout")
        tracked = [ROOT / path for path in
                   git("ls-files", "-z").decode().split("\0") if path]
        size = sum(path.lstat().st_size for path in tracked if path.exists()) / 1e6
        self.assertLess(size, WORKING_TREE_MB)
        self.assertLess(clone_mb(), CLONE_MB)
        self.assertGreater(clone_mb(), 1)  # else nothing was packed

    def test_has_no_picture_that_is_too_tall(self):
        self.assertTrue(house_tree.files(ROOT / "reports", (".svg",)))
        self.assertEqual(too_tall(ROOT), [])

    def test_has_svg_alone_for_pictures(self):
        self.assertEqual(house_tree.files(ROOT, (".png", ".jpg", ".gif", ".pdf")), [])


class TheChecks(FolderTest):
    def test_find_a_folder_that_is_too_large_by_all_of_its_files(self):
        self.write("a/one", "x" * 600_000)
        self.write("a/deep/two", "x" * 600_000)
        self.write("b/three", "x" * 600_000)
        self.assertEqual(too_large(self.path, {"a": 1, "b": 1, "a/deep": 0.5}),
                         ["a: 1.2 MB; it may have 1 MB", "a/deep: 0.6 MB; it may have 0.5 MB"])
        self.assertEqual(too_large(self.path, {"none": 1}),
                         ["none: has no file, and a limit of 1 MB"])

    def test_find_a_picture_that_is_too_tall(self):
        self.write("good.svg", '<svg xmlns="x" width="10pt" height="30pt">')
        self.write("deep/bad.svg", '<?xml?>\n<svg width="10pt" height="30.5pt">')
        self.write("odd.svg", "<svg>")
        self.assertEqual(too_tall(self.path),
                         ["deep/bad.svg: 3.05 times as tall as wide; it may be 3 times: cut it",
                          "odd.svg: its size is not stated in points"])
