# SPDX-License-Identifier: Apache-2.0
"""reports/explorer.html in headless Chromium: what is shown after a filter, a sort and a key."""

import unittest

from browser import PROGRAM, Browser
from fixture import ROOT, skip

if PROGRAM is None:
    skip("there is no Chromium; `./test --long` installs Debian's")

PAGE = ROOT / "reports/explorer.html"

# A row's texts: its cells as the table shows them.
ROWS = """[...document.querySelectorAll("#rows > tr:not(.opened)")].map((row) =>
            [...row.children].map((cell) => cell.innerText))"""
COUNT = "document.getElementById('count').innerText"
FOCUSED = "document.activeElement.id || document.activeElement.innerText"


class ExplorerInBrowser(unittest.TestCase):
    def setUp(self):
        self.browser = Browser(PAGE).__enter__()
        self.addCleanup(self.browser.__exit__)

    def rows(self):
        return self.browser.value(ROWS)

    def tab_to(self, name):
        for _ in range(30):
            self.browser.press("Tab")
            if self.browser.value(FOCUSED) == name:
                return
        self.fail(f"no Tab leads to {name}")

    def choose(self, name, text):
        """An option by typing its first letters, as a reader without a mouse does."""
        self.tab_to(name)
        self.browser.type(text)
        self.assertEqual(self.browser.value(f"document.getElementById('{name}').selectedOptions[0].text"),
                         text)

    def ratios(self):
        return [float(row[4].split("×")[0]) for row in self.rows() if not row[4].startswith("–")]

    def test_all_verdicts_are_there_the_largest_effect_first(self):
        count, of, total = self.browser.value(COUNT).split()[:3]
        self.assertEqual((count, of), (total, "of"))
        self.assertGreater(int(total), 2000)
        ratios = self.ratios()
        self.assertEqual(len(ratios), 200)
        self.assertEqual(ratios, sorted(ratios, reverse=True))

    def test_filters_by_keyboard_leave_the_rows_that_fit(self):
        self.choose("technique", "Ping-pong scheduling")
        self.choose("verdict", "REGRESSION")
        rows = self.rows()
        self.assertGreater(len(rows), 10)
        self.assertEqual(self.browser.value(COUNT).split()[0], str(len(rows)))
        for row in rows:
            self.assertIn("Ping-pong", row[0])
            self.assertEqual(row[5], "▼ REGRESSION")
        self.assertEqual({row[1] for row in rows}, {"Hopper kernel"})
        self.assertTrue(all(ratio < 1 for ratio in self.ratios()))
        self.tab_to("find")
        self.browser.type("d128 causal")
        narrower = self.rows()
        self.assertTrue(0 < len(narrower) < len(rows))
        for row in narrower:
            self.assertRegex(row[2], "d128.*causal")

    def test_every_filter_narrows_and_clearing_brings_all_back(self):
        total = self.browser.value(COUNT).split()[2]
        for name in "technique", "family", "head_dim", "length", "mask", "gpu", "verdict":
            with self.subTest(name):
                self.browser.value(f"""(() => {{ const select = document.getElementById("{name}");
                    select.selectedIndex = 1; select.dispatchEvent(new Event("change")); }})()""")
                self.assertTrue(0 < int(self.browser.value(COUNT).split()[0]) < int(total))
                self.browser.value("document.getElementById('reset').click()")
                self.assertEqual(self.browser.value(COUNT).split()[0], total)

    def test_enter_on_a_heading_sorts_and_sorts_the_other_way_round(self):
        self.tab_to("sort-effect")
        self.browser.press("Enter")
        self.assertEqual(self.ratios(), sorted(self.ratios()))
        self.assertLess(self.ratios()[0], 0.5)
        self.assertEqual(self.browser.value("""[...document.querySelectorAll("th[aria-sort]")]
            .map((head) => head.ariaSort).filter((sort) => sort !== "none")"""), ["ascending"])
        self.browser.press("Enter")
        self.assertGreater(self.ratios()[0], 10)

    def test_enter_opens_a_claim_with_its_samples_by_process_and_escape_closes_it(self):
        self.tab_to("sort-verdict")
        self.browser.press("Tab")
        self.browser.press("ArrowDown", times=2)
        self.browser.press("Enter")
        opened = "document.querySelector('#rows tr.opened')"
        self.assertEqual(self.browser.value(f"[...document.querySelectorAll('#rows > tr')].indexOf({opened})"),
                         3)
        processes = self.browser.value(f"""[...{opened}.querySelectorAll("tr.process")].map((row) =>
            [...row.children].map((cell) => cell.innerText))""")
        self.assertGreater(len(processes), 1)
        blocks = sum(int(process[1]) for process in processes)
        # A point per block, the ratio on the interval of this board and of the kind; a tick per process.
        self.assertEqual(self.browser.value(f"{opened}.querySelectorAll('svg circle').length"), blocks + 2)
        medians = [float(process[2].rstrip("×")) for process in processes]
        low, high = (float(bound.strip("[]×")) for bound in self.rows()[2][4].split("\n")[-1].split(", "))
        self.assertTrue(any(low <= median <= high for median in medians), (low, medians, high))
        self.browser.press("Escape")
        self.assertIsNone(self.browser.value(opened))
        self.browser.press("Home")
        self.assertEqual(self.browser.value(FOCUSED), self.rows()[0][0].split("\n")[0])

    def test_an_address_with_filters_shows_what_it_says(self):
        self.browser.open(PAGE.as_uri() + "?#mask=causal&head_dim=128&sort=effect")
        rows = self.rows()
        self.assertTrue(rows)
        for row in rows:
            self.assertRegex(row[2], "d128,.*causal")
        self.assertEqual(self.ratios(), sorted(self.ratios()))

    def tearDown(self):
        self.assertEqual(self.browser.complaints, [])
        addresses = {address.split("?")[0].split("#")[0] for address in self.browser.requests}
        self.assertLessEqual({address for address in addresses if not address.startswith("data:")},
                             {PAGE.as_uri()})
