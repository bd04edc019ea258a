#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether pictures show the same: two SVG files, or all SVG files of two folders.

    python3 -B plots/compare_svg.py MADE COMMITTED

Elements, their order, texts, colours and styles must be equal; coordinates may differ by 0.05 px,
of a picture 960 px wide: the matrix products behind them end in other digits on another CPU
(reports/decisions/0030-what-a-picture-shows.md). Names of marks and clip paths don't count, what
they stand for does. In folders the same files must be there, subfolders included.

Needs Python alone. Exit codes: 0 all show the same; 1 something differs, a line for each, or a file
is in one folder only; 2 wrong arguments, nothing to compare, or a file that is no SVG of ours.
"""

import itertools
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

TOLERANCE_PX = 0.05

_COORDINATES = frozenset(("d", "transform", "x", "y", "width", "height", "viewBox"))
_REFERENCES = frozenset(("href", "clip-path"))
_TOKEN = re.compile(r"([A-Za-z]+)|(-?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)")
_AXES_OF = {"M": "xy", "L": "xy", "H": "x", "V": "y", "Q": "xyxy", "C": "xyxyxy", "Z": "", "z": ""}


class NoPicture(Exception):
    """The text is no SVG that plots/ may have written; the message says why."""


def _words_and_numbers(text):
    return [word if word else float(number) for word, number in _TOKEN.findall(text)]


def _points(text):
    """The path's commands and coordinates, with H and V as the lines that they stand for: which
    of them a line is hangs on the last digit."""
    out, here, command, numbers = [], {"x": 0.0, "y": 0.0}, None, []
    for token in _words_and_numbers(text):
        if isinstance(token, str):
            if numbers:
                raise NoPicture(f"the path {text} lacks a coordinate")
            command = token
            if command not in _AXES_OF:
                raise NoPicture(f"the path {text} has the command {command}")
            if not _AXES_OF[command]:
                out.append(command)
            continue
        if command is None or not _AXES_OF[command]:
            raise NoPicture(f"the path {text} has a number without a command")
        numbers.append(token)
        if len(numbers) == len(_AXES_OF[command]):
            here.update(zip(_AXES_OF[command], numbers))
            out += (["L", here["x"], here["y"]] if command in "HV" else [command, *numbers])
            numbers = []
    if numbers:
        raise NoPicture(f"the path {text} lacks a coordinate")
    return out


class _Picture:
    """Its elements in the order of drawing, each with its look in words."""

    def __init__(self, text):
        try:
            self._root = ElementTree.fromstring(text)
        except ElementTree.ParseError as error:
            raise NoPicture(str(error)) from error
        if self._tag(self._root) != "svg":
            raise NoPicture(f"its root is {self._tag(self._root)}")
        self._by_id = {element.get("id"): element for element in self._root.iter()
                       if element.get("id")}
        self._looks = dict(re.findall(r"\.(\w+)\{([^}]*)\}", "".join(
            element.text or "" for element in self._root.iter() if self._tag(element) == "style")))
        self.elements = list(self._walk(self._root))

    @staticmethod
    def _tag(element):
        return element.tag.rpartition("}")[2]

    def _walk(self, element):
        """(what must be equal, [(attribute, coordinates)]) of each element that is shown, and of
        what it refers to behind it."""
        tag = self._tag(element)
        if tag in ("defs", "style"):
            return
        exact, coordinates, meant = {"text": (element.text or "").strip()}, [], []
        for qualified, value in element.items():
            name = qualified.rpartition("}")[2]
            if name in _COORDINATES:
                coordinates.append((name, _points(value) if name == "d" else
                                    _words_and_numbers(value)))
            elif name in _REFERENCES:
                exact[name] = "defined"
                meant.append(self._by_id.get(value.strip("url()#")))
                if meant[-1] is None:
                    raise NoPicture(f"nothing has the id of {value}")
            elif name == "class":
                if value not in self._looks:
                    raise NoPicture(f"no style is called {value}")
                exact["style"] = self._looks[value]
            elif name != "id":
                exact[name] = value
        yield tag, exact, sorted(coordinates)
        for child in [*meant, *element]:
            yield from self._walk(child)
        yield f"/{tag}", {}, []


def _same(one, other):
    if one is None or other is None or one[:2] != other[:2]:
        return False
    places, other_places = ([token for name, values in element[2] for token in (name, *values)]
                            for element in (one, other))
    return len(places) == len(other_places) and all(
        a == b if isinstance(a, str) or isinstance(b, str) else abs(a - b) <= TOLERANCE_PX
        for a, b in zip(places, other_places))


def _spoken(element):
    if element is None:
        return "nothing"
    tag, exact, coordinates = element
    said = [f"{name} {value!r}" for name, value in exact.items() if value]
    return " ".join([tag, *said, *(f"{name} {' '.join(map(str, values))}"[:60]
                                   for name, values in coordinates)])


def differences(made, expected):
    """A line for each element that differs in two pictures' texts; [] where both show the same.

    NoPicture where one of them is none."""
    ours, theirs = _Picture(made).elements, _Picture(expected).elements
    lines = [f"{_spoken(one)} instead of {_spoken(other)}"
             for one, other in itertools.zip_longest(ours, theirs) if not _same(one, other)]
    if len(ours) != len(theirs):  # behind one that is missing, all stand beside others
        return [f"{len(ours)} elements instead of {len(theirs)}; the first that differs: {lines[0]}"]
    return lines


def _compare_files(made, expected):
    contents = []
    for path in (made, expected):
        try:
            contents.append(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise NoPicture(f"{path}: {error}") from error
    if contents[0] == contents[1]:
        return []
    try:
        return [f"{made}: {line}" for line in differences(*contents)]
    except NoPicture as error:
        raise NoPicture(f"{made} or {expected}: {error}") from error


def compare(made, expected):
    """As differences(), of two files or folders; NoPicture also where there is nothing to compare."""
    if not made.is_dir() and not expected.is_dir():
        return _compare_files(made, expected)
    names = [{path.relative_to(folder) for path in folder.rglob("*.svg")}
             for folder in (made, expected)]
    if not names[0] | names[1]:
        raise NoPicture(f"{made} and {expected}: no SVG in either")
    lines = []
    for name in sorted(names[0] | names[1]):
        if name not in names[0]:
            lines.append(f"{made / name} is not there")
        elif name not in names[1]:
            lines.append(f"{expected / name} is not there")
        else:
            lines += _compare_files(made / name, expected / name)
    return lines


def main(arguments):
    if len(arguments) != 2 or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        lines = compare(*map(pathlib.Path, arguments))
    except NoPicture as error:
        print(f"compare_svg.py: {error}", file=sys.stderr)
        return 2
    print("\n".join(lines), end="\n" if lines else "")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
