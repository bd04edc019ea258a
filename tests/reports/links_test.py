# SPDX-License-Identifier: Apache-2.0
"""README is short, its links lead somewhere, questions are answered within two clicks, in the
terms of the glossary."""

import os.path
import pathlib
import re
import unittest

from fixture import ROOT

LINK = re.compile(r"(?<!\!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s#]+)(?:#[^()\s]*)?\)")
# Question -> what the page that answers it says.
QUESTIONS = {
    "Three stages of K/V or two?": "`three_stages` over `two_stages`",
    "What pays on Hopper at S = 512, causal?": "In the Hopper kernel: ",
    "Did warp specialisation help, and why?": "Why: ",
}

# What the glossary has another term for.
FORBIDDEN = ("fastest arm", "intervals hold 1", "95% should", "take turns at the tensor cores",
             "keeps the copy engine busy")


def links(page):
    """The pages of this tree that a page links."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return {pathlib.PurePath(os.path.normpath(page.parent / target))
            for _, target in LINK.findall(text) if "://" not in target}


def answer(page, question):
    """The lines below the question on the page; empty where it is not asked there."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.search(rf"^- \*\*\[{re.escape(question)}\].*\n((?:  - .*\n)+)", text, re.MULTILINE)
    return found[1] if found else ""


class Links(unittest.TestCase):
    def test_readme_has_at_most_120_lines(self):
        self.assertLessEqual(len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()), 120)

    def test_every_link_of_the_entrance_leads_to_a_file(self):
        for page in ("README.md", "CONTRIBUTING.md", "reports/README.md", "reports/GLOSSARY.md",
                     "reports/h200/README.md", "reports/h100_80gb_hbm3/README.md"):
            for target in sorted(links(pathlib.PurePath(page))):
                self.assertTrue((ROOT / target).exists(), f"{page} links {target}")

    def test_questions_are_answered_within_two_clicks(self):
        first = links(pathlib.PurePath("README.md"))
        second = {target for page in first if page.suffix == ".md" for target in links(page)}
        pages = [page for page in first | second if page.suffix == ".md"]
        for question, says in QUESTIONS.items():
            self.assertTrue(any(says in answer(page, question) for page in pages), question)

    def test_generated_pages_use_the_terms_of_the_glossary(self):
        pages = [ROOT / "README.md"]
        for gpu in ("h200", "h100_80gb_hbm3"):
            pages += (ROOT / "reports" / gpu).glob("*.md")
            pages += (ROOT / "reports" / gpu / "techniques").glob("*.md")
        self.assertGreater(len(pages), 100)
        for page in pages:
            text = page.read_text(encoding="utf-8")
            self.assertEqual([term for term in FORBIDDEN if term in text], [], page)
