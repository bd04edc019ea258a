# SPDX-License-Identifier: Apache-2.0
"""The bugs that are planted in Hopper's kernels show on the CPU too, and the kernels without them are right.

    emulated_mutants_test.py --run EMULATED_RUN --instances INSTANCES_JSON -- COMPILER FLAGS...
"""

import pathlib
import sys
import tempfile
import unittest

import instances_on_cpu

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mutations"))
import mutants  # noqa: E402 (the path comes first)

FAMILIES = ("wgmma", "resident")


class EmulatedMutantsTest(unittest.TestCase):
    options = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.on_cpu = instances_on_cpu.OnCpu(cls.options, folder.name)
        # A build of some designs has some of the instances.
        cls.all = [each for each in mutants.load()
                   if each.family in FAMILIES and each.kernel in cls.on_cpu.instances]

    def test_there_are_mutants(self):
        self.assertGreater(len(self.all), 30)

    def test_kernels_without_bugs_are_right(self):
        cases = sorted({(each.kernel, each.problem, each.input) for each in self.all})
        kernels = sorted({kernel for kernel, *_ in cases})
        libraries = dict(zip(kernels, instances_on_cpu.map_all(
            lambda kernel: self.on_cpu.compiled(kernel, self.on_cpu.instances[kernel]["symbol"]), kernels)))
        for case, (code, said) in zip(cases, instances_on_cpu.map_all(
                lambda case: self.on_cpu.ran(libraries[case[0]], *case[1:]), cases)):
            with self.subTest(case):
                self.assertEqual(code, 0, said)

    def test_bugs_show(self):
        def outcome(mutation):
            folder = self.on_cpu.folder / mutation.name
            mutants.main("apply", mutation.name, folder)
            library = self.on_cpu.compiled(mutation.kernel, mutation.name, folder)
            return self.on_cpu.ran(library, mutation.problem, mutation.input)
        for each, (code, said) in zip(self.all, instances_on_cpu.map_all(outcome, self.all)):
            with self.subTest(each.name):
                self.assertNotIn(code, (0, 2), f"{each.what}: {said}")


if __name__ == "__main__":
    EmulatedMutantsTest.options = instances_on_cpu.options(__doc__)
    unittest.main(argv=sys.argv[:1])
