# SPDX-License-Identifier: Apache-2.0
"""Every figure that the page of a toggle showed of a record is in the same row of a page of today.

testdata/old_pages.txt.xz has what those pages showed on 2026-11-25, when a page per claim replaced
them (reports/decisions/0043): for each record and each of its rows the page, the names in the row
and its figures. names.md leads from the old page, the arms and the problem to today's row.

Two kinds of figures are not in the file, and 0043 counts them: those pooled over all verdicts of a
toggle, which each record renews, and those in sentences of the registry, which are written there.
A row stands for as long as its record is the newest of its design: one that has a newer record is
counted, and the test prints how many. Whoever changes statistics on purpose names the records in
JUDGED_ANEW.

    git archive c93a829f^ reports | tar x -C old
    PYTHONPATH=tests python3 tests/reports/old_pages_test.py --write old/reports
"""

import collections
import dataclasses
import lzma
import pathlib
import re
import sys
import unittest

from fixture import ROOT

FILE = pathlib.Path(__file__).parent / "testdata" / "old_pages.txt.xz"
FIGURE = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*|(?<=\*\*)[A-Z_]+(?=\*\*)")
PATH = re.compile(r"\]\(([^()\s#]+)")
# The columns that name a row; those behind them have its figures. {kind: columns once}
KINDS = {"verdict": ("design", "shape", "without", "with"), "resources": ("design", "without", "with"),
         "shares": ("design", "shape")}
ROWS = {"verdict": 2745, "resources": 630, "shares": 10}
JUDGED_ANEW = {}  # {record: the decision that changed its figures}


@dataclasses.dataclass(frozen=True)
class Row:
    gpu: str
    record: str
    toggle: str
    names: tuple  # after the design: problem and arms, as the old page spelled them
    figures: tuple

    @property
    def kind(self):
        return {3: "verdict", 2: "resources", 1: "shares"}[len(self.names)]

    @property
    def design(self):
        return self.record.rsplit("-", 1)[0]


def plain(cell):
    """Without its link or its marks of code."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", cell).strip("`")


def tables(text):
    """[(columns, [cells of a row])] of a page in Markdown; columns of figures end in no colon."""
    found, above = [], None
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split(" | ")]
        if not line.startswith("|"):
            above = None
        elif line.startswith("| :---"):
            found.append((above, []))
        elif above is None:
            above = cells
        else:
            found[-1][1].append(cells)
    return found


def figures(cells):
    return tuple(dict.fromkeys(FIGURE.findall(" ".join(cells))))


def records_of(folder):
    """The records that a GPU's pages are of, by the index of techniques."""
    return [plain(row[0]) for columns, rows in tables((folder / "techniques.md").read_text("utf-8"))
            if columns[0] == "record" for row in rows]


def old_rows(reports):
    for folder in sorted(path.parent for path in reports.glob("*/techniques.md")):
        record_of = {record.rsplit("-", 1)[0]: record for record in records_of(folder)}
        for page in sorted((folder / "techniques").glob("*.md")):
            for columns, rows in tables(page.read_text("utf-8")):
                names = next((of for of in KINDS.values() if tuple(columns[:len(of)]) == of), ())
                for cells in rows if names else ():
                    yield Row(folder.name, record_of[plain(cells[0])], page.stem,
                              tuple(map(plain, cells[1:len(names)])), figures(cells[len(names):]))


def packed(rows):
    """All names before all figures: like beside like makes a small file."""
    rows = sorted(rows, key=lambda row: (row.gpu, row.record, row.names, row.toggle))
    names, shown, last = [], [], None
    for row in rows:
        if last != (row.gpu, row.record):
            last = row.gpu, row.record
            names.append("# " + " ".join(last))
        names.append(" ".join((*row.names, row.toggle)))
        shown.append(" ".join(row.figures))
    text = "\n".join([*names, "", *shown]) + "\n"
    return lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)


def unpacked(data):
    names, shown = (part.splitlines() for part in lzma.decompress(data).decode().split("\n\n"))
    rows, of = [], ()
    for line in names:
        if line.startswith("# "):
            of = line.split()[1:]
        else:
            *row_names, toggle = line.split(" ")
            rows.append(Row(*of, toggle, tuple(row_names), tuple(shown[len(rows)].split())))
    return rows


class Pages:
    """The pages of a GPU, and what names.md says of the names of old."""

    def __init__(self, folder):
        self.folder = folder
        self.records = set(records_of(folder))
        self.pages_of, self.arms, self.problems = {}, {}, {}
        design = None
        for part in re.split(r"\n(?=<summary>)", (folder / "names.md").read_text("utf-8")):
            if part.startswith("<summary>"):
                design = part.removeprefix("<summary>").split()[0]
            for columns, rows in tables(part):
                if columns[0] == "page of a toggle, once":
                    self.pages_of = {plain(row[0]): PATH.findall(" ".join(row[1:])) for row in rows}
                elif columns[:2] == ["in records", "on pages"]:
                    self.problems = {plain(row[0]): plain(row[1]) for row in rows}
                elif design:
                    self.arms |= {(design, plain(old)): plain(new) for old, new in rows}
        self._rows = {}

    def rows(self, toggle):
        """{(design, names in today's words): [figures]} on the pages that a toggle's page became."""
        if toggle not in self._rows:
            found = self._rows[toggle] = collections.defaultdict(list)
            for path in self.pages_of[f"techniques/{toggle}.md"]:
                for columns, rows in tables((self.folder / path).read_text("utf-8")):
                    for cells in rows if columns[0] == "design" else ():
                        self._add(found, dict(zip(columns, cells, strict=True)))
        return self._rows[toggle]

    @staticmethod
    def _add(found, cells):
        design, shape = plain(cells.pop("design")), cells.pop("shape", None)
        if "in the record" in cells:
            arms = [plain(arm) for arm in cells.pop("in the record").split(" → ")]
        else:
            arms = [plain(cells.pop(side)) for side in ("without", "with") if side in cells]
        names = ([plain(shape)] if shape else []) + arms
        found[design, tuple(names)].append(set(figures(cells.values())))

    def lost(self, row):
        """The old row's figures that today's has not; all of them where there is no such row."""
        names = row.names
        if row.kind == "resources":
            names = tuple(self.arms.get((row.design, arm), arm) for arm in names)
        else:
            names = (self.problems.get(names[0], names[0]), *names[1:])
        today = self.rows(row.toggle).get((row.design, names), [set()])
        return min((set(row.figures) - has for has in today), key=len)


class OldPagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rows = unpacked(FILE.read_bytes())
        cls.pages = {gpu: Pages(ROOT / "reports" / gpu) for gpu in {row.gpu for row in cls.rows}}
        cls.stand = [row for row in cls.rows if row.record in cls.pages[row.gpu].records]
        print(f"{len(cls.rows) - len(cls.stand)} of {len(cls.rows)} rows are of records that have a "
              f"newer one, {sum(row.record in JUDGED_ANEW for row in cls.stand)} were judged anew")

    def test_the_file_has_every_row_of_the_old_pages(self):
        self.assertEqual(collections.Counter(row.kind for row in self.rows), ROWS)

    def test_a_row_stands_unless_its_design_has_a_newer_record(self):
        self.assertTrue(self.stand, "every record has a newer one: delete this test and its file")
        for row in self.rows:
            # Names end in the time.
            self.assertTrue(any(record.rsplit("-", 1)[0] == row.design and record >= row.record
                                for record in self.pages[row.gpu].records),
                            f"{row.gpu}: no page is of {row.record} or of a newer one")

    def test_every_old_page_leads_to_pages_that_are_there(self):
        for gpu, pages in self.pages.items():
            for page, paths in pages.pages_of.items():
                self.assertTrue(paths, f"{gpu}: {page} leads nowhere")
                for path in paths:
                    self.assertTrue((pages.folder / path).is_file(), f"{gpu}: {page} → {path}")

    def test_every_figure_of_a_record_is_in_the_row_that_the_old_one_became(self):
        lost = [f"{row.gpu} {row.record} techniques/{row.toggle}.md: {' '.join(row.names)} showed "
                f"{' '.join(sorted(figures))}"
                for row in self.stand if row.record not in JUDGED_ANEW
                if (figures := self.pages[row.gpu].lost(row))]
        self.assertEqual(lost[:20], [], f"{len(lost)} of {len(self.stand)} rows lack figures")

    def test_a_figure_that_is_gone_is_missed(self):
        row = next(row for row in self.stand if row.kind == "verdict")
        changed = dataclasses.replace(row, figures=(*row.figures, "12345.678"))
        self.assertEqual(self.pages[row.gpu].lost(changed), {"12345.678"})
        unknown = dataclasses.replace(row, names=("no_such_problem", *row.names[1:]))
        self.assertEqual(self.pages[row.gpu].lost(unknown), set(row.figures))


if __name__ == "__main__" and sys.argv[1:2] == ["--write"]:
    FILE.write_bytes(packed(old_rows(pathlib.Path(sys.argv[2]))))
elif __name__ == "__main__":
    unittest.main()
