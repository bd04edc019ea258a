# SPDX-License-Identifier: Apache-2.0
"""tests/environments.py: that its rows change what they say, and what it makes of failures."""

import pathlib
import shutil
import sys
import unittest

import stand_ins
from fixture import ROOT, FolderTest, load

SCRIPT = ROOT / "tests" / "environments.py"


class Environments(FolderTest):
    """Of a build that has one test, and an interpreter that answers as the test wants."""

    def setUp(self):
        super().setUp()
        self.build = self.path / "a build"
        self.build.mkdir()
        self.answer("")

    def answer(self, text):
        python = self.path / "python"
        stand_ins.script(python, f"echo '{text}'")
        (self.build / "CMakeCache.txt").write_text(f"WARPLEDGER_PYTHON:FILEPATH={python}\n",
                                                   encoding="utf-8")

    def rows(self, shell, *names, **environment):
        """The script's exit code and output where the build's test is this line of shell."""
        test = self.path / "the_test"
        stand_ins.script(test, shell + "\n")
        (self.build / "CTestTestfile.cmake").write_text(
            f'add_test(the_test "{test}")\nset_tests_properties(the_test PROPERTIES '
            "SKIP_RETURN_CODE 77)\n", encoding="utf-8")
        done = self.call(sys.executable, "-B", SCRIPT, "--build", self.build, "-j1",
                         *[f"--only={name}" for name in names], **environment)
        return done.returncode, done.stdout + done.stderr

    def test_a_row_changes_what_it_says(self):
        for name, shell in (("time_zone", '[[ $TZ == Pacific/Auckland ]]'),
                            ("umask", '[[ $(umask) == 0077 ]]')):
            with self.subTest(name):
                self.assertEqual(self.rows(shell, name)[0], 0)
                self.assertEqual(self.rows(f"! {shell}", name)[0], 1)

    @unittest.skipUnless(shutil.which("localedef") and pathlib.Path(
        "/usr/share/i18n/locales/tr_TR").exists(), "no localedef, or no source of the locale")
    def test_the_turkish_row_has_decimal_commas(self):
        self.answer(",")
        code, said = self.rows('[[ $(printf "%.1f" 1,5) == 1,5 ]]', "turkish")
        self.assertEqual(code, 0, said)
        self.answer(".")
        code, said = self.rows("true", "turkish")
        self.assertEqual(code, 1)
        self.assertIn("tr_TR.UTF-8 is not in effect", said)

    def test_one_row_has_the_cheap_ones_at_once(self):
        self.answer(",")
        everything = '[[ $TZ == Pacific/Auckland && $(umask) == 0077 ]]'
        code, said = self.rows(everything, "at_once")
        self.assertEqual(code, 0, said)
        # The stand-in for Python gives one answer, so that libm seems to have one variant.
        self.assertIn("libm has one variant", said)
        self.assertEqual(self.rows(f"! {everything}", "at_once")[0], 1)

    def test_a_failure_is_named_and_the_other_rows_go_on(self):
        code, said = self.rows('[[ -z ${TZ-} ]]', "time_zone", "umask", TZ="")
        self.assertEqual(code, 1)
        self.assertRegex(said, r"time_zone +FAILED +\d+ s  1 of 1: the_test")
        self.assertRegex(said, r"umask +passed +\d+ s  1 tests passed")

    def test_what_a_machine_lacks_is_skipped_with_the_reason(self):
        self.answer("SSE3 AVX")
        code, said = self.rows("true", "blas_skylakex")
        self.assertEqual(code, 77)
        self.assertIn("this processor lacks AVX512_SKX", said)
        self.assertEqual(self.rows("true", "blas_skylakex", "umask")[0], 0)

    def test_a_core_type_that_openblas_does_not_take_is_no_success(self):
        self.answer("SSE3 AVX2 FMA3")  # to each question, so for the core type too
        code, said = self.rows("true", "blas_haswell")
        self.assertEqual(code, 1)
        self.assertIn("OpenBLAS takes SSE3 AVX2 FMA3 for it", said)

    def test_a_build_without_a_test_is_a_failure(self):
        self.rows("true", "umask")
        (self.build / "CTestTestfile.cmake").write_text("", encoding="utf-8")
        self.ends(self.call(sys.executable, "-B", SCRIPT, "--build", self.build, "--only=umask"), 1)

    def test_summaries_are_compared_to_the_byte(self):
        script = load(SCRIPT)
        run = script.Run(build=self.build, work=self.path, jobs=1)
        judge = ('for a; do case $a in --out=*) echo {} > "${{a#--out=}}" ;; '
                 '--record=*) test -e "${{a#--record=}}" || exit 2 ;; esac; done')
        (self.build / "bin").mkdir()
        stand_ins.script(self.build / "bin/warpledger", judge.format("one"))
        other = self.path / "another_program"
        stand_ins.script(other, judge.format("one"))
        self.assertRegex(script.same_summaries(run, self.path, other),
                         r"^\d+ summaries are the same bytes$")
        stand_ins.script(other, judge.format("two"))
        with self.assertRaisesRegex(script.Failed, r"(\d+) of \1 summaries differ"):
            script.same_summaries(run, self.path, other)
        stand_ins.script(other, "echo no summary >&2; exit 3")
        with self.assertRaisesRegex(script.Failed, "exit status 3. no summary"):
            script.same_summaries(run, self.path, other)

    def test_wrong_use_is_refused(self):
        code, said = self.rows("true", "moonlight")
        self.assertEqual(code, 2)
        self.assertIn("no row is named moonlight", said)
        self.ends(self.call(sys.executable, "-B", SCRIPT, "--build", self.path / "none"), 2,
                  err="holds no build")

    def test_the_list_has_every_row(self):
        done = self.ends(self.call(sys.executable, "-B", SCRIPT, "--list"))
        rows = load(SCRIPT).ROWS
        self.assertEqual([line.split()[0] for line in done.stdout.splitlines()], list(rows))
