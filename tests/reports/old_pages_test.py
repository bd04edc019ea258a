# SPDX-License-Identifier: Apache-2.0
"""Every figure that the page of a toggle showed of a record is in the same row of a page of today.

testdata/old_pages.txt.xz has what those pages showed on 2026-11-25, when a page per claim replaced
them (reports/decisions/0043): for each record and each of its rows the page, the names in the row
and its figures. names.md leads from the old page, the arms and the problem to today's row.

Two kinds of figures are not in the file, and 0043 counts them: those pooled over all verdicts of a
toggle, which each record renews, and those in sentences of the registry, which are written there.
A row stands for as long as its record is the newest of its design: one that has a newer record is
counted, and the test prints how many.

All records were judged anew on 2026-11-27, when a ratio became the mean of its processes' medians
(reports/decisions/0002) and the constants of boards were fitted anew (0036). So a ratio may have
moved by what MOVED says, a bound of an interval by a little more, and the rows in
testdata/relabelled.txt have another verdict; it says why. All else is what it was: whoever changes
statistics on purpose measures these anew.

    git archive c93a829f^ reports | tar x -C old
    PYTHONPATH=tests python3 tests/reports/old_pages_test.py --write old/reports
    PYTHONPATH=tests python3 tests/reports/old_pages_test.py --relabelled
"""

import collections
import dataclasses
import functools
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
MOST_PROCESSES = 64  # ablations/judge/measured.h
RELABELLED = pathlib.Path(__file__).parent / "testdata" / "relabelled.txt"
# By which share of the larger figure a ratio and another decimal of its row moved at most, beyond
# the rounding of both. {record: these}; "" stands for all others. The largest move of a ratio is
# 1.6%, from 0.639 to 0.628: records that are named here have processes that differ by percents.
MOVED = {"": (0.005, 0.0102),
         "factorial-20261121T112349Z": (0.0084, 0.0119),
         "hopper_fp8-20261123T083422Z": (0.005, 0.0195),
         "mma_decode-20261124T130331Z": (0.005, 0.0136),
         "mma_dtype-20261125T102857Z": (0.0157, 0.0205),
         "mma_launch-20261122T002529Z": (0.0065, 0.0137),
         "stage2_plus-20261122T104000Z": (0.0062, 0.0518)}
VERDICTS = {"ADOPT", "REAL_BELOW_GATE", "NEUTRAL", "REGRESSION", "INCONCLUSIVE", "BROKEN", "INVALID",
            "NOT_APPLICABLE"}


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
        found[design, tuple(names)].append(
            (figures(cells.values()), "would decide" in " ".join(cells.values())))

    def lost(self, row):
        """The old row's figures that today's has not; all of them where there is no such row."""
        return min((gone(row, has, undecided) for has, undecided in self.today(row)), key=len)

    def today(self, row):
        """[(figures, whether more would decide)] of the row's place today."""
        names = row.names
        if row.kind == "resources":
            names = tuple(self.arms.get((row.design, arm), arm) for arm in names)
        else:
            names = (self.problems.get(names[0], names[0]), *names[1:])
        return self.rows(row.toggle).get((row.design, names), [((), False)])


def is_decimal(figure):
    return figure.replace(".", "", 1).isdigit() and "." in figure


def moved(old, new):
    """By which share two printed decimals differ surely, whatever was rounded off."""
    rounded = sum(0.5 * 10.0 ** -len(figure.split(".")[1]) for figure in (old, new))
    old, new = float(old), float(new)
    return max(0.0, abs(new - old) - rounded) / max(old, new, rounded)


def label(figures_of):
    return next((figure for figure in figures_of if figure in VERDICTS), "")


def gone(row, has, undecided):
    """The figures of an old row that its row of today, with the figures `has`, has not."""
    held = row.figures
    relabelled = relabelled_rows().get(key_of(row))
    if relabelled == (label(held), label(has)):
        held = held[:held.index(relabelled[0])]  # behind it stands why
    lost = set(held) - set(has)
    if undecided:
        # How many boards and how many processes would decide is counted by another rule since
        # 2026-11-26 (decisions/0002, item 9).
        counts = {figure for figure in lost if figure.isdigit() and 2 <= int(figure) <= MOST_PROCESSES}
        lost -= counts if len(counts) <= 2 else set()
    if row.kind == "resources" or not has:
        return lost
    ratio_moved, other_moved = MOVED.get(row.record, MOVED[""])
    decimals = [figure for figure in has if is_decimal(figure)]

    def stands(figure):
        if not is_decimal(figure):
            return False
        if figure == held[0]:
            return is_decimal(has[0]) and moved(figure, has[0]) <= ratio_moved
        return min((moved(figure, other) for other in decimals), default=1) <= other_moved

    return {figure for figure in lost if not stands(figure)}


def key_of(row):
    return (row.gpu, row.record, row.toggle, *row.names)


@functools.cache
def relabelled_rows():
    """{key of a row: (verdict of old, verdict of today)}"""
    rows = {}
    for line in RELABELLED.read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            key, verdicts, _ = line.split(" | ")
            rows[tuple(key.split())] = tuple(verdicts.split(" -> "))
    return rows


def relabelled_text(stand, pages):
    """What RELABELLED should say: each row whose label is another, and by which figures."""
    lines = ["# Rows of old pages with another verdict today, and why: GPU record toggle problem arms |",
             "# verdicts | ratio and interval for boards of the kind. `old_pages_test.py --relabelled`."]
    for row in stand:
        if row.kind != "verdict":
            continue
        found = [has for has, _ in pages[row.gpu].today(row) if has]
        if not found or any(label(has) == label(row.figures) for has in found):
            continue
        before, after = (f"{figures_of[0]} [{figures_of[1]}, {figures_of[2]}]"
                         for figures_of in (row.figures, found[0]))
        why = "the ratio moved" if row.figures[0] != found[0][0] else "the interval is another"
        lines.append(f"{' '.join(key_of(row))} | {label(row.figures)} -> {label(found[0])} | "
                     f"{why}: {before} -> {after}")
    return "\n".join(lines) + "\n"


class OldPagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rows = unpacked(FILE.read_bytes())
        cls.pages = {gpu: Pages(ROOT / "reports" / gpu) for gpu in {row.gpu for row in cls.rows}}
        cls.stand = [row for row in cls.rows if row.record in cls.pages[row.gpu].records]
        print(f"{len(cls.rows) - len(cls.stand)} of {len(cls.rows)} rows are of records that have a "
              "newer one")

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
                for row in self.stand
                if (figures := self.pages[row.gpu].lost(row))]
        self.assertEqual(lost[:20], [], f"{len(lost)} of {len(self.stand)} rows lack figures")

    def test_a_label_that_changed_is_listed_with_its_reason_and_no_other(self):
        self.assertEqual(RELABELLED.read_text("utf-8"), relabelled_text(self.stand, self.pages))

    def test_a_figure_that_is_gone_is_missed(self):
        row = next(row for row in self.stand if row.kind == "verdict")
        changed = dataclasses.replace(row, figures=(*row.figures, "12345.678"))
        self.assertEqual(self.pages[row.gpu].lost(changed), {"12345.678"})
        unknown = dataclasses.replace(row, names=("no_such_problem", *row.names[1:]))
        self.assertEqual(self.pages[row.gpu].lost(unknown), set(row.figures))

    def test_a_ratio_that_moved_further_and_another_label_are_missed(self):
        row = next(row for row in self.stand if row.kind == "verdict" and row.record not in MOVED
                   and label(row.figures) == "ADOPT" and key_of(row) not in relabelled_rows())
        ratio = float(row.figures[0])
        for factor in (0.985, 1.015):
            moved_row = dataclasses.replace(row, figures=(f"{factor * ratio:.3f}", *row.figures[1:]))
            self.assertEqual(self.pages[row.gpu].lost(moved_row), {moved_row.figures[0]})
        other = tuple("NEUTRAL" if figure == "ADOPT" else figure for figure in row.figures)
        self.assertEqual(self.pages[row.gpu].lost(dataclasses.replace(row, figures=other)),
                         {"NEUTRAL"})

    def test_rounding_moves_nothing(self):
        self.assertEqual(moved("1.004", "1.005"), 0)
        self.assertAlmostEqual(moved("1.000", "1.011"), 0.010 / 1.011)
        self.assertEqual(moved("2.2", "2.24"), 0)


if __name__ == "__main__" and sys.argv[1:2] == ["--write"]:
    FILE.write_bytes(packed(old_rows(pathlib.Path(sys.argv[2]))))
elif __name__ == "__main__" and sys.argv[1:2] == ["--relabelled"]:
    of_gpus = {gpu: Pages(ROOT / "reports" / gpu) for gpu in {row.gpu for row in unpacked(FILE.read_bytes())}}
    RELABELLED.write_text(relabelled_text(
        [row for row in unpacked(FILE.read_bytes()) if row.record in of_gpus[row.gpu].records],
        of_gpus), "utf-8")
elif __name__ == "__main__":
    unittest.main()
