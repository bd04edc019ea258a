# SPDX-License-Identifier: Apache-2.0
"""Every source file names its licence within its first lines.

    licence_test.py --add    adds the line where it lacks, as a comment of the file's language
"""

import sys
import unittest

import house_tree
from fixture import ROOT, FolderTest

LINE = "SPDX-License-Identifier: Apache-2.0"
WITHIN = 3  # lines
CPP = (".h", ".cc", ".cu", ".cuh", ".def", ".h.in")
HASH = (".py", ".sh", ".cmake", "CMakeLists.txt")


def sources(root):
    """{path: what opens a comment in it} of the source files; scripts need no suffix."""
    found = {}
    for name in house_tree.files(root) + [path.relative_to(root) for path in root.glob(".ci/*")]:
        path = root / name
        if name.name.endswith(CPP):
            found[path] = "//"
        elif name.name.endswith(HASH) or path.open("rb").read(2) == b"#!":
            found[path] = "#"
    return found


def unlicensed(root):
    """The source files without the line among their first, with what opens a comment in them."""
    return {path: comment for path, comment in sources(root).items()
            if f"{comment} {LINE}" not in path.read_text(encoding="utf-8").split("\n")[:WITHIN]}


def add(root):
    """Adds the line to each file that lacks it, after what must come first; returns the files.

    One line and no more: hashes of sources leave out this line alone, and a page quotes the
    comment that a file opens with.
    """
    changed = unlicensed(root)
    for path, comment in changed.items():
        lines = path.read_text(encoding="utf-8").split("\n")
        lines.insert(int(lines[0].startswith("#!")), f"{comment} {LINE}")
        path.write_text("\n".join(lines), encoding="utf-8")
    return list(changed)


class TheTree(FolderTest):
    def test_names_the_licence_in_every_source_file(self):
        self.assertGreater(len(sources(ROOT)), 500)
        self.assertEqual([str(path.relative_to(ROOT))
                          for path in unlicensed(ROOT)], [])

    def test_has_the_licence_that_the_lines_name(self):
        text = (ROOT / "LICENSE").read_text(encoding="utf-8")
        self.assertIn("Apache License\n                           Version 2.0", text)


class Add(FolderTest):
    FILES = {
        "a.cc": ("// Head.\n\nint a;\n", f"// {LINE}\n// Head.\n\nint a;\n"),
        "b.py": ('"""Head."""\n', f'# {LINE}\n"""Head."""\n'),
        "run": ("#!/bin/sh\necho\n", f"#!/bin/sh\n# {LINE}\necho\n"),
        "CMakeLists.txt": ("project(x)", f"# {LINE}\nproject(x)"),
        "there.h": (f"// Head.\n// {LINE}\n", f"// Head.\n// {LINE}\n"),
        "late.h": (f"\n\n\n// {LINE}\n", f"// {LINE}\n\n\n\n// {LINE}\n"),
        "data.json": ("{}\n", "{}\n"),
    }

    def test_puts_the_line_where_it_belongs_and_once(self):
        for name, (before, _) in self.FILES.items():
            self.write(name, before)
        self.assertEqual(sorted(path.name for path in add(self.path)),
                         ["CMakeLists.txt", "a.cc", "b.py", "late.h", "run"])
        for name, (_, after) in self.FILES.items():
            self.assertEqual((self.path / name).read_text(encoding="utf-8"), after, name)
        self.assertEqual(add(self.path), [])


if __name__ == "__main__":
    if sys.argv[1:] == ["--add"]:
        for changed_file in add(ROOT):
            print(changed_file.relative_to(ROOT))
    else:
        unittest.main()
