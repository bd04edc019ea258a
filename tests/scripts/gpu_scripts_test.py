# SPDX-License-Identifier: Apache-2.0
"""tests/gpu_tests.sh notices what it is there to notice.

Stand-ins take the place of the GPU tests.
"""


from fixture import ROOT, FolderTest
from stand_ins import script


class GpuTestsTest(FolderTest):
    def gpu_tests(self, failing_shard, with_mutants=True):
        tests = self.path / "prefix" / "share" / "warpledger" / "gpu_tests"
        script(tests / "forward_gpu_test", f"""
echo "shard $GTEST_SHARD_INDEX of $GTEST_TOTAL_SHARDS"
[[ $GTEST_SHARD_INDEX != {failing_shard} ]]
""")
        script(tests / "other_gpu_test", "exit 0\n")
        if with_mutants:
            script(tests.parent / "check_mutant", "exit 0\n")
        script(self.path / "python", "exit 0\n")
        return self.call(ROOT / "tests" / "gpu_tests.sh", self.path / "prefix",
                         self.path / "python", GPU_TEST_SHARDS="3")

    def test_all_parts_of_the_long_test_run(self):
        done = self.ends(self.gpu_tests("none"))
        for shard in range(3):
            self.assertIn(f"shard {shard} of 3", done.stdout)
        self.assertIn("13 passed, 0 failed", done.stdout)

    def test_planted_bugs_that_were_not_compiled_are_left_out_with_a_word(self):
        self.ends(self.gpu_tests("none", with_mutants=False),
                  out=("mutation_gpu_test is left out", "12 passed, 0 failed"))

    def test_a_number_of_parts_that_is_none_is_refused(self):
        script(self.path / "prefix" / "share" / "warpledger" / "gpu_tests" / "a_gpu_test",
               "exit 0\n")
        self.ends(self.call(ROOT / "tests" / "gpu_tests.sh", self.path / "prefix",
                            GPU_TEST_SHARDS="many"), 2, err="GPU_TEST_SHARDS=many")

    def test_one_part_that_fails_fails_it(self):
        self.ends(self.gpu_tests("1"), 1, out=("FAILED: forward_gpu_test", "12 passed, 1 failed"))
