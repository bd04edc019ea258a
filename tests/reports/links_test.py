# SPDX-License-Identifier: Apache-2.0
"""README is short, its links lead somewhere, questions are answered within two clicks, in the
terms of the glossary, and the first screen of a claim has its answer."""

import os.path
import pathlib
import re
import unittest

from fixture import ROOT

LINK = re.compile(r"(?<!\!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s#]+)(?:#[^()\s]*)?\)")
INDEX = "reports/h200/README.md"
# Question -> (the pages from README to where it is answered, what the first line of its answer says,
# what the last page says).
QUESTIONS = {
    "Three stages of K/V or two?": (
        ["README.md", INDEX, "reports/h200/claims/cp_async_stages.three_stages_over_two_stages.md"],
        r"\*\*(Two|Three)\.\*\* The third stage was faster in \d+ of \d+ verdicts over two stages",
        "`three_stages` over `two_stages`"),
    "What pays on Hopper at S = 512, causal?": (
        ["README.md", INDEX, "reports/h200/techniques.md"],
        r"\*\*.* in the Hopper kernel\*\* gives most\.", "`fa3_d64_s512_causal`"),
    "Did warp specialisation help, and why?": (
        ["README.md", INDEX, "reports/h200/techniques/warp_specialisation.md"],
        r"\*\*(No\.|Yes\*\*, in the )", "**Lesson.** "),
}

# What the glossary has another term for.
FORBIDDEN = ("fastest arm", "intervals hold 1", "95% should", "take turns at the tensor cores",
             "copy engine", "resident family", "resident kernel", "t mission_", "(level ", " Level 1", " Level 2", " Level 3",
             "or (2)", "scale (1)", "interval holds", "speak of other code")


def read(page):
    return (ROOT / page).read_text(encoding="utf-8")


def links(page):
    """The pages of this tree that a page links."""
    return {os.path.normpath(pathlib.PurePath(page).parent / target)
            for _, target in LINK.findall(read(page)) if "://" not in target}


def answer(page, question):
    """The lines below the question on the page; empty where it is not asked there."""
    found = re.search(rf"^- \*\*\[{re.escape(question)}\].*\n((?:  - .*\n)+)", read(page),
                      re.MULTILINE)
    return found[1].splitlines() if found else []


class Links(unittest.TestCase):
    def test_readme_has_at_most_120_lines(self):
        self.assertLessEqual(len(read("README.md").splitlines()), 120)

    def test_every_link_of_the_entrance_leads_to_a_file(self):
        pages = ["README.md", "CONTRIBUTING.md", "reports/README.md", "reports/GLOSSARY.md"]
        for gpu in ("h200", "h100_80gb_hbm3"):
            folder = ROOT / "reports" / gpu
            pages += [f"reports/{gpu}/{name}" for name in ("README.md", "names.md", "l4_notes.md")]
            pages += [path.relative_to(ROOT).as_posix()
                      for part in ("claims", "techniques") for path in (folder / part).glob("*.md")]
        self.assertGreater(len(pages), 150)
        for page in pages:
            for target in sorted(links(page)):
                self.assertTrue((ROOT / target).exists(), f"{page} links {target}")

    def test_questions_are_answered_within_two_clicks(self):
        for question, (path, first, last) in QUESTIONS.items():
            with self.subTest(question):
                self.assertLessEqual(len(path) - 1, 2)
                for page, target in zip(path, path[1:]):
                    self.assertIn(target, links(page), page)
                lines = answer(path[1], question)
                self.assertTrue(lines, "it is not asked")
                self.assertRegex(lines[0], first)
                self.assertIn(last, read(path[-1]))
        self.assertIn("Why: ", "\n".join(answer(INDEX, "Did warp specialisation help, and why?")))

    def test_a_claims_first_screen_has_its_answer(self):
        pages = sorted((ROOT / "reports/h200/claims").glob("*.md"))
        self.assertGreater(len(pages), 100)
        for path in pages:
            screen = path.read_text(encoding="utf-8").partition("<details>")[0]
            self.assertRegex(screen, r"(?s)\A# .*\n\n\*\*(Faster|Slower|No difference|Not decided|No sound)", path)
            for part in ("| kind of problem |", "**Mechanism.** ", "**Lesson.** "):
                self.assertIn(part, screen, path)
            self.assertLess(len(screen.splitlines()), 30, path)

    def test_generated_pages_use_the_terms_of_the_glossary(self):
        pages = [ROOT / "README.md"]
        for gpu in ("h200", "h100_80gb_hbm3"):
            for folder in (".", "techniques", "claims"):
                pages += (ROOT / "reports" / gpu / folder).glob("*.md")
        self.assertGreater(len(pages), 100)
        for page in pages:
            text = page.read_text(encoding="utf-8")
            self.assertEqual([term for term in FORBIDDEN if term in text], [], page)
            self.assertNotRegex(text, r"(?m)(?:^|[.:] )Of (?!course)", page)
