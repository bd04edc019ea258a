#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs hold the very code that resources.json and codegen.json speak of.

Both are read from the kernels' fat binaries, which the programs embed: one that was not
linked again after a kernel had changed would measure other code than the record states.
"""

import argparse
import json
import pathlib
import unittest

PATHS = argparse.ArgumentParser()
PATHS.add_argument("--instances", type=pathlib.Path, required=True)
PATHS.add_argument("--programs", type=pathlib.Path, nargs="+", required=True)


class LinkedCodeTest(unittest.TestCase):
    paths: argparse.Namespace

    def test_each_program_embeds_each_kernel_as_it_was_last_compiled(self):
        folder = self.paths.instances.parent
        names = [row["symbol"] for row in json.loads(self.paths.instances.read_text())["instances"]]
        self.assertGreater(len(names), 5)
        for program in self.paths.programs:
            image = program.read_bytes()
            stale = [
                name for name in names if (folder / f"{name}.fatbin").read_bytes() not in image
            ]
            self.assertEqual(stale, [], f"{program} holds other code of these kernels")


if __name__ == "__main__":
    LinkedCodeTest.paths, rest = PATHS.parse_known_args()
    unittest.main(argv=["linked_code_test", *rest])
