# SPDX-License-Identifier: Apache-2.0
"""A figure as a small SVG: coordinates to a hundredth of a pixel, each look and mark written once.

    picture = slim(matplotlib_svg)   # text in, text out; what is shown stays as it is

matplotlib names marks and clip paths after hashes of coordinates, writes these with six decimals
and repeats a text's look at each text. Here names follow the order of definition, looks are
classes of one style sheet, and groups that do no more than carry a name are gone.
"""

import re
import xml.etree.ElementTree as ElementTree
from xml.sax.saxutils import escape, quoteattr

DECIMALS = 2
# Verdana and DejaVu Sans come of one design and have about the same widths.
FONTS = "DejaVu Sans,Verdana,Geneva,sans-serif"

_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
_NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?")
_SEGMENT = re.compile(r"([MLQCz])([^MLQCz]*)")


def _number(text):
    """The number's shortest text with so many decimals: "-.5", "12", "0"."""
    short = f"{float(text):.{DECIMALS}f}".rstrip("0").rstrip(".")
    short = re.sub(r"^(-?)0\.", r"\1.", short)
    return "0" if short == "-0" else short


def _numbers(text):
    return [_number(value) for value in _NUMBER.findall(text)]


def _joined(numbers):
    """A minus sign parts numbers as well as a blank does."""
    return "".join(value if at == 0 or value.startswith("-") else f" {value}"
                   for at, value in enumerate(numbers))


def _path_data(text):
    """matplotlib's path with short numbers; lines along an axis as H and V."""
    out, here = [], [None, None]
    for command, rest in _SEGMENT.findall(text):
        numbers = _numbers(rest)
        if command == "L" and numbers[1] == here[1]:
            out.append(f"H{numbers[0]}")
        elif command == "L" and numbers[0] == here[0]:
            out.append(f"V{numbers[1]}")
        else:
            out.append(command + _joined(numbers))
        here = numbers[-2:] or here
    return "".join(out)


def _transform(text):
    """Without the turn by nothing that matplotlib gives each text."""
    return "".join(f"{name}({_joined(_numbers(values))})"
                   for name, values in re.findall(r"(\w+)\(([^)]*)\)", text)
                   if name != "rotate" or float(_NUMBER.match(values)[0]) != 0)


def _look(style):
    """A style attribute without blanks; its font by the names of other systems too."""
    parts = [[half.strip() for half in part.split(":", 1)]
             for part in style.split(";") if part.strip()]
    return ";".join(f"{name}:{FONTS if name == 'font-family' else value}" for name, value in parts)


def _class_name(number):
    letters = "abcdefghijklmnopqrstuvwxyz"
    return letters[number] if number < 26 else f"{_class_name(number // 26 - 1)}{number % 26}"


class _Slim:
    def __init__(self, root):
        self._root = root
        self._looks = {}  # a style attribute -> its class
        self._ids = {}  # matplotlib's id -> ours
        self._defined = {}  # what <defs> hold, without its id -> our id
        for defs in root.iter(f"{_SVG}defs"):
            for element in defs:
                if element.tag != f"{_SVG}style":
                    # Equal after rounding: two hashes of one mark, which are one on another CPU.
                    self._ids[element.get("id")] = self._defined.setdefault(
                        self._element(element), f"i{len(self._defined)}")

    def document(self):
        body = "".join(self._element(child) for child in self._root)
        size = "".join(f' {name}="{value}"' for name, value in self._root.items()
                       if name in ("width", "height", "viewBox"))
        looks = "".join(f".{name}{{{look}}}\n" for look, name in self._looks.items())
        defs = "".join(re.sub(r"^<\w+", rf'\g<0> id="{name}"', text)
                       for text, name in self._defined.items())
        return (f'<svg xmlns="http://www.w3.org/2000/svg"{size}>\n<style>\n'
                f"*{{stroke-linejoin:round;stroke-linecap:butt}}\n{looks}</style>\n"
                f"<defs>\n{defs}</defs>\n{body}</svg>\n")

    def _attributes(self, element):
        """(name, value) of those that are written, in matplotlib's order."""
        for name, value in element.items():
            if name == "style":
                look = _look(value)
                yield "class", self._looks.setdefault(look, _class_name(len(self._looks)))
            elif name == "d":
                yield name, _path_data(value)
            elif name == "transform":
                if moved := _transform(value):
                    yield name, moved
            elif name == "clip-path":
                yield name, f"url(#{self._ids[value[5:-1]]})"
            elif name == _HREF:
                yield "href", f"#{self._ids[value[1:]]}"
            elif name != "id":
                yield name, _number(value) if _NUMBER.fullmatch(value) else value

    def _element(self, element):
        """Its text, lines that each end; "" where nothing is shown."""
        tag = element.tag.removeprefix(_SVG)
        if tag in ("metadata", "defs"):
            return ""
        inner = "".join(self._element(child) for child in element)
        attributes = dict(self._attributes(element))
        if tag == "g" and not (inner and attributes):
            return inner
        opening = "".join([tag, *(f" {name}={quoteattr(value)}"
                                  for name, value in attributes.items())])
        text = escape(element.text or "") if tag == "text" else ""
        if not inner and not text:
            return f"<{opening}/>\n"
        return f"<{opening}>{text}{inner and chr(10)}{inner}</{tag}>\n"


def slim(picture):
    """The picture as matplotlib wrote it, without what no one sees."""
    return _Slim(ElementTree.fromstring(picture)).document()
