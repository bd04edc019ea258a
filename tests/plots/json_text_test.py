# SPDX-License-Identifier: Apache-2.0
"""plots/json_text.py: what a schema lets through, and by which path it names the rest."""

import unittest

from plots.json_text import checked

SCHEMA = {"cells": [{"us": (float, None), "bits?": int, "counts": {str: int}, "right": bool}]}


def cell(**changed):
    return {"us": 1, "counts": {"a?": 1}, "right": True} | changed


class Checked(unittest.TestCase):
    def test_gives_back_what_is_as_the_schema_says(self):
        for changed in ({}, {"us": None}, {"us": 0.5}, {"bits": 8}, {"counts": {}}, {"more": "x"}):
            value = {"cells": [cell(**changed)]}
            self.assertIs(checked(value, SCHEMA), value)

    def test_names_the_path_of_what_is_not(self):
        for value, said in (
                ([], "the document must be an object, but is []"),
                ({}, "cells is missing"),
                ({"cells": {}}, "cells must be an array, but is {}"),
                ({"cells": [cell(), 3]}, "cells[1] must be an object, but is 3"),
                ({"cells": [{"us": 1}]}, "cells[0].counts is missing"),
                ({"cells": [cell(us="x")]}, 'cells[0].us must be a number or null, but is "x"'),
                ({"cells": [cell(us=True)]}, "cells[0].us must be a number or null, but is true"),
                ({"cells": [cell(bits=None)]}, "cells[0].bits must be an integer, but is null"),
                ({"cells": [cell(right=1)]}, "cells[0].right must be true or false, but is 1"),
                ({"cells": [cell(counts={"a?": 1.5})]},
                 "cells[0].counts.a? must be an integer, but is 1.5")):
            with self.subTest(said), self.assertRaises(ValueError) as raised:
                checked(value, SCHEMA)
            self.assertEqual(str(raised.exception), said)
