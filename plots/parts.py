# SPDX-License-Identifier: Apache-2.0
"""A record's verdicts in parts that one picture each can show.

reports/model/derived/verdict_pictures.h has the same rule, for the pages that link the pictures.
"""

import copy

from plots import style

_MAX_VERDICTS = 115  # with more a picture is more than twice as tall as wide

# Shapes of other subjects than attention have neither.
_KEYS = (
    lambda shape: (f"_d{shape.get('head_dim')}", f"head_dim {shape.get('head_dim')}"),
    lambda shape: (("_causal", "causal attention") if shape.get("causal") else
                   ("_full", "full attention")),
)


def _verdicts(summary, shapes):
    names = {shape["name"] for shape in shapes}
    return sum(verdict["shape"] in names for verdict in summary.verdicts)


def parts(summary):
    """[(what goes behind a picture's name, the summary at some of its shapes)].

    Shapes of one head_dim where the record has too many verdicts, of one mask where these are
    still too many, and so many shapes in a row as there is room for.
    """
    cut = [("", "", summary.shapes)]
    for key in _KEYS:
        cut = [piece for part in cut for piece in _by_key(summary, part, key)]
    cut = [piece for part in cut for piece in _evenly(summary, part)]
    return [(suffix, _at(summary, shapes, words)) for suffix, words, shapes in cut]


def _by_key(summary, part, key):
    suffix, words, shapes = part
    groups = {}
    for shape in shapes:
        groups.setdefault(key(shape), []).append(shape)
    if len(groups) < 2 or _verdicts(summary, shapes) <= _MAX_VERDICTS:
        return [part]
    return [(suffix + more, f"{words}, {said}" if words else f"shapes with {said}", group)
            for (more, said), group in groups.items()]


def _evenly(summary, part):
    suffix, words, shapes = part
    verdicts = _verdicts(summary, shapes)
    pieces = style.split_evenly(shapes, _MAX_VERDICTS * len(shapes) // max(1, verdicts))
    if len(pieces) < 2:
        return [part]
    return [(f"{suffix}_{number}", f"{len(piece)} of the {words or 'shapes'}", piece)
            for number, piece in enumerate(pieces, 1)]


def _at(summary, shapes, words):
    names = {shape["name"] for shape in shapes}
    part = copy.copy(summary)
    part.shapes, part.part = shapes, f"{words} · " if words else ""
    for key in ("verdicts", "cells", "peers", "floors"):
        setattr(part, key, [row for row in getattr(summary, key) if row["shape"] in names])
    return part
