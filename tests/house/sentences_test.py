# SPDX-License-Identifier: Apache-2.0
"""Tests look for words and figures, never for a whole sentence. The committed pages are the golden
ones, a page of each kind and more, and fresh_test.py holds each of them to the byte."""

import re
import unittest

from fixture import ROOT

LITERAL = r'"(?:[^"\\\n]|\\.)*"'
# What a matcher or an assertion expects: adjacent literals are one.
EXPECTED = re.compile(rf"(?:HasSubstr|StartsWith|EndsWith|StrEq|ContainsRegex|assert\w+)\(\s*"
                      rf"({LITERAL}(?:\s*{LITERAL})*)")
# From a capital to a full stop, in five words or more.
SENTENCE = re.compile(r"(?:^|[.!?:] |\\n)([A-Z][^.!?|]*(?: [^ .!?|]+){4,}[^.!?|]*[.!?])(?=$| |\\n)")


def sentences(code):
    for match in EXPECTED.finditer(code):
        yield from SENTENCE.findall("".join(part[1:-1] for part in re.findall(LITERAL, match[1])))


class Sentences(unittest.TestCase):
    def test_finds_a_sentence(self):
        for code in ('HasSubstr("It is slower on\\n"\n          "every board."))',
                     'self.assertIn("Ours: 2. The peer was faster there.", page)'):
            self.assertEqual(len(list(sentences(code.replace("\\n", "")))), 1, code)
        self.assertEqual(list(sentences('HasSubstr("slower on every board.")')), [])

    def test_no_test_expects_one(self):
        files = [path for folder in ("ablations", "reports")
                 for path in (ROOT / "tests" / folder).rglob("*_test.*")
                 if path.suffix in (".cc", ".py")]
        self.assertGreater(len(files), 50)
        found = {str(path): list(sentences(path.read_text("utf-8"))) for path in files}
        self.assertEqual({path: said for path, said in found.items() if said}, {})


if __name__ == "__main__":
    unittest.main()
