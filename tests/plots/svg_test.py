# SPDX-License-Identifier: Apache-2.0
"""Small pictures, and what two of them must share to show the same."""

import contextlib
import io
import re

import make_summary
import matplotlib.pyplot as plt
from fixture import FolderTest

from plots import compare_svg, effects, render, svg
from plots.summary import Summary


def by_matplotlib(figure):
    text = io.StringIO()
    figure.savefig(text, format="svg")
    return text.getvalue()


class PictureTest(FolderTest):
    @classmethod
    def setUpClass(cls):
        figure = effects.draw(Summary(make_summary.make_summary()))
        cls.written = by_matplotlib(figure)
        cls.picture = render.encode(figure)
        plt.close(figure)

    def changed(self, pattern, change):
        """The picture with the pattern's first match changed."""
        text, count = re.subn(pattern, change, self.picture, count=1)
        self.assertEqual(count, 1, pattern)
        self.assertNotEqual(text, self.picture)
        return text


class SlimTest(PictureTest):
    def test_a_slim_picture_has_every_text_mark_and_path_and_a_third_of_the_bytes(self):
        texts = re.findall(r">([^<>\n]+)</text>", self.written)
        self.assertGreater(len(texts), 50)
        self.assertEqual(re.findall(r">([^<>\n]+)</text>", self.picture), texts)
        for tag in "use", "path", "clipPath":
            self.assertEqual(self.picture.count(f"<{tag} "), self.written.count(f"<{tag} "), tag)
        self.assertLess(len(self.picture), 0.4 * len(self.written))

    def test_coordinates_end_behind_the_second_decimal(self):
        long_number = r' [a-z]+="[^"]*\.\d{3}'
        self.assertGreater(len(re.findall(long_number, self.written)), 100)
        self.assertEqual(re.findall(long_number, self.picture), [])

    def test_every_name_is_used_and_follows_the_order_of_definition(self):
        names = re.findall(r' id="(\w+)"', self.picture)
        self.assertEqual(names, [f"i{number}" for number in range(len(names))])
        self.assertEqual(set(names), set(re.findall(r"#(i\d+)", self.picture)))

    def test_definitions_that_differ_in_hidden_digits_are_one(self):
        def mark(name, x):
            return f'<defs><path id="{name}" d="M {x} 0 L 1 1"/></defs>'
        slim = svg.slim('<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink='
                        '"http://www.w3.org/1999/xlink">' + mark("m1", "0.501") + mark("m2", "0.499")
                        + '<use xlink:href="#m1" x="1"/><use xlink:href="#m2" x="2"/></svg>')
        self.assertEqual(re.findall(r"<use.*", slim), ['<use href="#i0" x="1"/>',
                                                       '<use href="#i0" x="2"/>'])
        self.assertIn('<path id="i0" d="M.5 0L1 1"/>', slim)

    def test_texts_with_signs_of_xml_survive(self):
        figure = plt.figure()
        figure.text(0.5, 0.5, "a < b & c > \"d\"", rotation=90)
        slim = render.encode(figure)
        plt.close(figure)
        self.assertIn(">a &lt; b &amp; c &gt; \"d\"</text>", slim)
        self.assertRegex(slim, r'transform="translate\([\d. ]+\)rotate\(-90\)"')

    def test_a_turned_and_moved_group_keeps_its_numbers(self):
        slim = svg.slim('<svg xmlns="http://www.w3.org/2000/svg"><g transform="translate(1.239 '
                        '-0.001) rotate(-0 3 4)"><path d="M 0 1 L 5 1 L 5 -0.5 Q 1 2 3 4 z"/></g>'
                        "</svg>")
        self.assertIn('<g transform="translate(1.24 0)">\n<path d="M0 1H5V-.5Q1 2 3 4z"/>\n</g>',
                      slim)


class CompareTest(PictureTest):
    def assert_told(self, other, *said):
        lines = compare_svg.differences(other, self.picture)
        self.assertTrue(lines, "the difference is not told")
        for word in said:
            self.assertIn(word, "\n".join(lines))

    def shifted(self, pattern, by):
        return self.changed(pattern, lambda found: f"{found[1]}{float(found[2]) + by:.2f}{found[3]}")

    PLACES = {  # three groups each: before a coordinate, the coordinate, behind it
        "mark": r'(<use [^>]*x=")([\d.]+)(")',
        "text": r'(<text [^>]*y=")([\d.]+)(">1\.\d+×)',
        "line": r'(<path [^>]*d="M)([\d.]+)( )',
        "corner of a mark": r'(<path id="i2" d="M0 )([\d.]+)(L)',
        "clip path": r'(<rect x=")([\d.]+)(")',
    }

    def test_a_picture_shows_the_same_as_itself(self):
        self.assertEqual(compare_svg.differences(self.picture, self.picture), [])

    def test_what_is_moved_by_a_pixel_is_told(self):
        for name, pattern in self.PLACES.items():
            with self.subTest(name):
                self.assert_told(self.shifted(pattern, 1), "instead of")
                self.assert_told(self.shifted(pattern, -0.2), "instead of")

    def test_what_is_moved_by_a_hundredth_of_a_pixel_is_not(self):
        for name, pattern in self.PLACES.items():
            for by in (0.01, -0.01):
                with self.subTest(name, by=by):
                    self.assertEqual(compare_svg.differences(self.shifted(pattern, by),
                                                             self.picture), [])

    def test_a_line_along_an_axis_is_one_that_is_not_quite_so(self):
        for other in (
                self.changed(r'd="M([\d.]+) ([\d.]+)H([\d.]+)',
                             lambda f: f'd="M{f[1]} {f[2]}L{f[3]} {float(f[2]) + 0.01:.2f}'),
                self.changed(r'd="M([\d.]+) ([\d.]+)V([\d.]+)',
                             lambda f: f'd="M{f[1]} {f[2]}L{float(f[1]) - 0.01:.2f} {f[3]}')):
            self.assertEqual(compare_svg.differences(other, self.picture), [])

    def test_a_missing_label_is_told(self):
        self.assert_told(self.changed(r"<text [^>]*>WMMA for P V</text>\n", ""),
                         "elements instead of", "WMMA for P V")

    def test_another_label_is_told(self):
        self.assert_told(self.changed("WMMA for P V", "WMMA for PV"), "WMMA for PV")

    def test_a_missing_mark_and_a_mark_too_many_are_told(self):
        self.assert_told(self.changed(r"<use [^>]*/>\n", ""), "elements instead of")
        self.assert_told(self.changed(r"<use [^>]*/>\n", lambda found: 2 * found[0]),
                         "elements instead of")

    def test_a_missing_corner_is_told(self):
        self.assert_told(self.changed(r'(<path [^>]*d="M[^"L]*?)V[\d.]+', r"\1"), "path")

    def test_another_colour_is_told_of_one_element_and_of_all(self):
        self.assert_told(self.changed("fill:#009e73", "fill:#009e74"), "#009e74")
        looks = dict(re.findall(r"\.(\w+)\{([^}]*)\}", self.picture))
        green = next(name for name, look in looks.items() if "fill:#009e73" in look)
        other = next(name for name, look in looks.items() if "fill:#0072b2" in look)
        self.assert_told(self.changed(rf'(<use [^>]*class="){green}"', rf'\1{other}"'), "#0072b2")

    def test_another_width_or_opacity_of_a_line_is_told(self):
        self.assert_told(self.changed("stroke-width:3", "stroke-width:3.01"), "stroke-width:3.01")

    def test_two_elements_in_the_other_order_are_told(self):
        self.assert_told(self.changed(r"(<text [^>]*>\d\S*</text>\n)(<text .*\n)", r"\2\1"),
                         "instead of")

    def test_names_of_looks_and_definitions_are_no_difference(self):
        renamed = re.sub(r'(id="|#)i(\d)', r"\1other\2", self.picture)
        renamed = re.sub(r'class="(\w+)"', r'class="z\1"', renamed)
        renamed = re.sub(r"^\.(\w+)\{", r".z\1{", renamed, flags=re.MULTILINE)
        self.assertNotEqual(renamed, self.picture)
        self.assertEqual(compare_svg.differences(renamed, self.picture), [])

    def test_what_is_no_picture_is_refused(self):
        for text in ("", "<svg", "<html></html>", '<svg><use href="#none"/></svg>',
                     '<svg><path d="M 1"/></svg>', '<svg><path d="A 1 2"/></svg>',
                     '<svg><path class="none"/></svg>'):
            with self.subTest(text), self.assertRaises(compare_svg.NoPicture):
                compare_svg.differences(text, self.picture)


class ProgramTest(PictureTest):
    def setUp(self):
        super().setUp()
        for name in "a/one.svg", "a/deep/two.svg", "b/one.svg", "b/deep/two.svg":
            self.write(name, self.picture)

    def run_on(self, *names):
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = compare_svg.main([str(self.path / name) for name in names])
        return code, said.getvalue()

    def test_equal_files_and_folders_are_passed_in_silence(self):
        self.assertEqual(self.run_on("a/one.svg", "b/deep/two.svg"), (0, ""))
        self.assertEqual(self.run_on("a", "b"), (0, ""))

    def test_a_difference_is_told_with_its_file(self):
        (self.path / "a/deep/two.svg").write_text(self.picture.replace("WMMA for P V", "x"))
        for names in (("a/deep/two.svg", "b/one.svg"), ("a", "b")):
            code, said = self.run_on(*names)
            self.assertEqual(code, 1)
            self.assertIn("a/deep/two.svg: text text 'x'", said)

    def test_a_file_that_only_one_folder_has_is_told(self):
        (self.path / "a/deep/two.svg").unlink()
        self.assertEqual(self.run_on("a", "b"), (1, f"{self.path}/a/deep/two.svg is not there\n"))
        self.assertEqual(self.run_on("b", "a"), (1, f"{self.path}/a/deep/two.svg is not there\n"))

    def test_what_cant_be_compared_is_no_success(self):
        (self.path / "empty").mkdir()
        (self.path / "a/one.svg").write_text("no picture")
        for names in ((), ("a",), ("a", "b"), ("a/one.svg", "b/one.svg"), ("none.svg", "b/one.svg"),
                      ("empty", "empty")):
            with self.subTest(names):
                code, said = self.run_on(*names)
                self.assertEqual(code, 2)
                self.assertTrue(said)
