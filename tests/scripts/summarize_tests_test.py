# SPDX-License-Identifier: Apache-2.0
"""cmake/summarize_tests.py: the last lines of ./test."""

import sys

from fixture import ROOT, FolderTest


# As ctest 3.25 writes it.
PASSED = '<testcase name="good_test" status="run"><system-out>ok</system-out></testcase>'
FAILED = ('<testcase name="bad_test" status="fail"><failure message="Failed"/>'
          '<system-out>no</system-out></testcase>')
SKIPPED = ('<testcase name="gpu_test" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>'
           '<system-out>SKIPPED: no usable GPU: no driver\n</system-out></testcase>')


class SummarizeTests(FolderTest):
    def summarize(self, *cases, log="-- Warpledger 0.1.0, Release\n"):
        junit = self.write("ctest.xml", f'<testsuite>{"".join(cases)}</testsuite>')
        return self.call(sys.executable, "-B", ROOT / "cmake/summarize_tests.py", "--junit", junit,
                         "--configure-log", self.write("configure.log", log))

    def test_counts_and_names_what_happened(self):
        result = self.ends(self.summarize(PASSED, FAILED, SKIPPED))
        self.assertEqual(result.stdout.splitlines(), [
            "Tests: 1 passed, 1 failed, 1 skipped",
            "  failed: bad_test",
            "  skipped (no usable GPU: no driver): gpu_test",
        ])

    def test_repeats_what_the_build_left_out(self):
        log = "-- Warpledger\n--   no nvcc: left out are the kernels\n--   tests left out: a_test\n"
        lines = self.summarize(PASSED, log=log).stdout.splitlines()
        self.assertEqual(lines[1:], ["  no nvcc: left out are the kernels",
                                     "  tests left out: a_test"])

    def test_says_that_nothing_was_tested_when_all_skipped(self):
        self.assertIn("nothing was tested", self.summarize(SKIPPED).stdout)

    def test_fails_when_there_was_no_test(self):
        self.ends(self.summarize(), 1, err="No test ran")
