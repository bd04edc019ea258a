# SPDX-License-Identifier: Apache-2.0
"""JSON of records as scripts read it: a file is whole and readable, or refused in one line.

    value = json_text.loads(path.read_bytes())       # ValueError says what is wrong
    json_text.checked(value, {"cells": [{"p50_us": (float, None)}]})  # or ValueError names the path
    page = text_of(json_text.markdown(value))        # texts that are safe on a page

    try: ... except json_text.DAMAGE as error: print(json_text.said(error))

Texts come without control characters, so that a picture stays XML and a terminal obeys nothing.
What no double holds, and what is no JSON at all (NaN), is refused as the program refuses it. Only
Python's own modules are used.
"""

import json
import math
import re

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_MOST_DIGITS = 20
_SHOWN = 200

# What code raises that meets a value of another kind or size than it takes.
DAMAGE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)


def said(error):
    """One line of what went wrong, short and without control characters."""
    return f"{type(error).__name__}: {printable(str(error))}"[:_SHOWN]


def printable(text):
    text = _CONTROL.sub(lambda found: " " if found[0] in "\n\t" else "", text)
    return text.encode("utf-8", "replace").decode()  # half of a pair of surrogates is no text


def _mapped(value, change):
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_mapped(element, change) for element in value]
    if isinstance(value, dict):
        return {change(key): _mapped(element, change) for key, element in value.items()}
    return value


def _integer(digits):
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _real(text):
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:_MOST_DIGITS]} is beyond all numbers")
    return number


def _constant(text):
    raise ValueError(f"{text} is no JSON")


def loads(content):
    """The value of a JSON text, or of its bytes. Raises ValueError."""
    try:
        text = content.decode("utf-8") if isinstance(content, bytes) else content
        return _mapped(json.loads(text, parse_int=_integer, parse_float=_real,
                                  parse_constant=_constant), printable)
    except RecursionError:
        raise ValueError("nested too deeply") from None


_NAMES = {str: "a string", bool: "true or false", int: "an integer", float: "a number",
          dict: "an object", list: "an array"}


def checked(value, schema, path=""):
    """The value, where it is as the schema says; ValueError names the path of what is not.

    A schema is a type, of which float is any number; {key: schema} of what an object has at least,
    where "key?" may be absent and {str: schema} is of every key; [schema] of each element;
    (schema, None) of what may be null.
    """
    nullable = isinstance(schema, tuple)
    if nullable:
        if value is None:
            return value
        schema = schema[0]
    kind = schema if isinstance(schema, type) else type(schema)
    # bool is an int to Python, and no number to us.
    if (not isinstance(value, (int, float) if kind is float else kind)
            or (isinstance(value, bool) and kind is not bool)):
        raise ValueError(f"{path or 'the document'} must be {_NAMES[kind]}"
                         f"{' or null' if nullable else ''}, but is {json.dumps(value)[:40]}")
    if kind is list and schema is not list:
        for i, element in enumerate(value):
            checked(element, schema[0], f"{path}[{i}]")
    if kind is dict and schema is not dict:
        for key, of_key in (dict.fromkeys(value, schema[str]) if str in schema else schema).items():
            name = key if str in schema else key.removesuffix("?")
            where = f"{path}.{name}" if path else name
            if name in value:
                checked(value[name], of_key, where)
            elif name == key:
                raise ValueError(f"{where} is missing")
    return value


def markdown(value):
    """The value with texts that stay text on a page: no HTML, no links, no end of a code span."""
    return _mapped(value, lambda text: text.replace("<", "&lt;").replace("`", "'").replace("](", "] ("))
