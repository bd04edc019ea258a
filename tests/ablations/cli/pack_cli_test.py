# SPDX-License-Identifier: Apache-2.0
"""`warpledger pack` and `unpack`, packs in place of folders, and packs that are damaged.

What is said of a damaged pack holds for the program and for reports/record_files.py alike.
"""

import fcntl
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile

import zstandard

import pack_fixture
import record_files
from cli_fixture import DAMAGED, MISSING, OK, USAGE, RecordTest
from fixture import ROOT
from invented_record import run_json, sample_lines

FILES = ("correctness.jsonl", "run.json", "samples.jsonl")
MEMBERS = ("correctness.jsonl.columns", "run.json", "samples.jsonl.columns")


class PackTest(RecordTest):
    def setUp(self):
        super().setUp()
        self.pack = self.path / "record.tar.zst"

    def contents(self):
        return {path.name: path.read_bytes() for path in self.record.iterdir()}

    def archive(self):
        tar = zstandard.ZstdDecompressor().decompress(self.pack.read_bytes())
        return tarfile.open(fileobj=io.BytesIO(tar))

    def sum_lines(self):
        """Each line of the record with its sum, as programs since 2026-11-24 write it."""
        for name in "correctness.jsonl", "samples.jsonl":
            path = self.record / name
            bodies = [line.rstrip(b"}") for line in path.read_bytes().splitlines()]
            path.write_bytes(b"".join(
                b'%s,"sum":"%s"}\n' % (body, hashlib.sha256(body).hexdigest()[:8].encode())
                for body in bodies))

    def names(self):
        """What lies beside the record, and itself."""
        return {path.name for path in self.path.iterdir()} - {"micro-none"}

    def summary(self, record):
        self.said("judge", f"--record={record}", "--out=out.json")
        return (self.path / "out.json").read_bytes()


class Pack(PackTest):
    def test_the_folder_becomes_a_file_that_all_read_as_the_folder(self):
        self.said("judge", "--record=record")
        before = (self.record / "summary.json").read_bytes()
        files = self.contents()
        said = self.said("pack", "record")
        self.assertRegex(said, r"\Arecord\.tar\.zst: 3 files, \d+\.\d\d MiB -> \d\.\d{3} MiB\n\Z")
        self.assertEqual(self.names(), {"record.tar.zst"})
        for name in "record", "record/", "record.tar.zst":
            self.assertEqual(self.summary(name), before, name)
        record = record_files.open_record(self.path / "record")
        self.assertEqual(record.name, "record")
        self.assertEqual({name: record.bytes(name) for name in FILES},
                         {name: files[name] for name in FILES})
        self.assertNotIn("summary.json", record)

    def test_the_same_files_give_the_same_bytes(self):
        self.said("pack", "record", "--keep", "--out=one.tar.zst")
        for name in FILES:
            os.utime(self.record / name, (1, 1))
            (self.record / name).chmod(0o600)
        self.said("judge", "--record=record")
        self.said("pack", "record", "--out=two.tar.zst")
        self.assertEqual((self.path / "one.tar.zst").read_bytes(),
                         (self.path / "two.tar.zst").read_bytes())

    def test_its_members_are_sorted_behind_the_sums_and_of_nobody(self):
        self.said("pack", "record")
        with self.archive() as archive:
            members = archive.getmembers()
        self.assertEqual([member.name for member in members],
                         [f"record/{name}" for name in ("SHA256SUMS", *MEMBERS)])
        self.assertEqual({(m.mtime, m.uid, m.gid, m.mode, m.uname, m.isreg()) for m in members},
                         {(0, 0, 0, 0o644, "", True)})

    def test_files_of_lines_stand_by_columns_without_their_sums(self):
        self.sum_lines()
        files = self.contents()
        self.said("pack", "record")
        with self.archive() as archive:
            members = {name: archive.extractfile(f"record/{name}").read()
                       for name in ("SHA256SUMS", *MEMBERS)}
        self.assertEqual(members, pack_fixture.by_columns(files) | {
            "SHA256SUMS": pack_fixture.sums_of(files)})
        self.assertIn(b'"sum":""}', members["samples.jsonl.columns"])
        record = record_files.open_record(self.pack)
        self.assertEqual({name: record.bytes(name) for name in FILES}, files)

    def test_what_the_columns_cant_hold_stands_as_it_is(self):
        (self.record / "calls.jsonl").write_bytes(b"")
        self.said("pack", "record")
        with self.archive() as archive:
            self.assertIn("record/calls.jsonl", archive.getnames())
        self.assertEqual(record_files.open_record(self.pack).bytes("calls.jsonl"), b"")

    def test_tar_sha256sum_and_the_script_of_the_manual_open_and_check_it(self):
        if not shutil.which("zstd"):
            self.skipTest("tar needs the program zstd, which is not here")
        manual = (ROOT / "reports/RECORD.md").read_text(encoding="utf-8")
        commands = re.search(r"^```\n(tar --zstd .*?)^```$", manual, re.S | re.M)[1]
        for summed in False, True:
            with self.subTest(summed=summed):
                if summed:
                    self.sum_lines()
                self.said("pack", "record")
                before = self.pack.read_bytes()
                subprocess.run(["bash", "-e", "-c", commands.replace("<run>", "record")], check=True,
                               cwd=self.path, capture_output=True)
                # A folder made so packs again to the same bytes.
                self.pack.unlink()
                self.said("pack", "record", "--keep")
                self.assertEqual(self.pack.read_bytes(), before)
                self.pack.unlink()
                (self.record / "SHA256SUMS").unlink()

    def test_unpack_makes_the_folder_again_and_leaves_the_pack(self):
        files = self.contents()
        self.said("pack", "record")
        before = self.pack.read_bytes()
        said = self.said("unpack", "record.tar.zst")
        self.assertRegex(said, r"\Arecord: 3 files as SHA256SUMS says, \d+\.\d\d MiB\n\Z")
        self.assertEqual(self.contents(), files)
        self.assertIn("record is there already", self.refused(USAGE, "unpack", "record.tar.zst"))
        self.said("unpack", "record.tar.zst", "--out=other")
        self.assertEqual({path.name for path in (self.path / "other").iterdir()}, set(FILES))
        self.said("pack", "record")  # nothing has changed, so the pack that is there stands
        self.assertEqual(self.pack.read_bytes(), before)
        self.assertFalse(self.record.exists())

    def test_the_same_call_removes_what_a_killed_one_left(self):
        killed = subprocess.Popen(["true"])
        killed.wait()
        self.said("pack", "record", "--keep")
        for packed in False, True:
            with self.subTest("the folder was on its way out" if packed else "before that"):
                self.write(f"record.tmp.{killed.pid}/samples.jsonl", "")
                self.write("record.tmp.old/samples.jsonl", "")  # whoever's that is
                self.said("pack", "record", code=USAGE if packed else OK)
                self.assertEqual(self.names(), {"record.tar.zst", "record.tmp.old"})

    def test_another_pack_in_its_place_is_left_alone(self):
        self.said("pack", "record", "--keep")
        (self.record / "correctness.jsonl").write_text(
            (self.record / "correctness.jsonl").read_text().replace('"seed": 1', '"seed": 2'))
        self.assertIn("record.tar.zst is there already and holds something else",
                      self.refused(USAGE, "pack", "record"))

    def test_where_both_are_there_the_folder_counts(self):
        self.said("pack", "record", "--keep")
        run = run_json() | {"run_id": "of the folder"}
        (self.record / "run.json").write_text(json.dumps(run))
        self.assertEqual(json.loads(self.summary("record"))["run_id"], "of the folder")
        self.assertEqual(record_files.open_record(self.record).json("run.json"), run)
        self.assertNotEqual(json.loads(self.summary("record.tar.zst"))["run_id"], "of the folder")

    def test_refuses_what_is_no_finished_record(self):
        for arguments, why in (((), "no record is named"), (("nothing",), "no such record"),
                               (("record", "x", "--out=y.tar.zst"), "takes one record"),
                               (("record", "--out=record.zip"), "ends in .tar.zst")):
            self.assertIn(why, self.refused(USAGE, "pack", *arguments))
        with self.subTest("a file of its own"):
            (self.record / "notes.txt").write_text("")
            self.assertIn("notes.txt", self.refused(USAGE, "pack", "record"))
            (self.record / "notes.txt").unlink()
        with self.subTest("a link"):
            (self.record / "samples.jsonl").rename(self.path / "samples")
            (self.record / "samples.jsonl").symlink_to("../samples")
            self.assertIn("samples.jsonl", self.refused(USAGE, "pack", "record"))
            (self.record / "samples.jsonl").unlink()
            (self.path / "samples").rename(self.record / "samples.jsonl")
        with self.subTest("in use"), open(self.record / "samples.jsonl") as samples:
            fcntl.flock(samples, fcntl.LOCK_EX)
            self.assertIn("another process is writing", self.refused(MISSING, "pack", "record"))
        with self.subTest("damaged"):
            whole = (self.record / "samples.jsonl").read_text()
            (self.record / "samples.jsonl").write_text(whole[:-1])
            self.assertIn("samples.jsonl", self.refused(DAMAGED, "pack", "record"))
            (self.record / "samples.jsonl").write_text(whole)
        with self.subTest("empty"):
            (self.path / "empty").mkdir()
            self.assertIn("empty: is no record", self.refused(USAGE, "pack", "empty"))

    def test_an_unfinished_record_is_packed_only_when_asked_to(self):
        (self.record / "samples.jsonl").write_text(
            "".join(line + "\n" for line in sample_lines(run_json())[:-3]))
        self.assertIn("1 blocks are missing", self.refused(USAGE, "pack", "record"))
        self.said("pack", "record", "--unfinished")
        self.assertTrue(self.pack.exists())

    def test_every_kind_of_record_packs(self):
        for kind, files in {"micro": ("micro.json", "cases.json"), "sanitizers": (
                "sanitizers.json",), "step_samples": ("step_samples.json",),
                            "dtypes": ("dtypes.json",)}.items():
            folder = self.path / f"{kind}-1"
            folder.mkdir()
            for name in files:
                (folder / name).write_text("{}")
            self.said("pack", folder.name)
            self.assertFalse(folder.exists())
            self.assertIn(files[0], record_files.open_record(folder))


class Read(PackTest):
    """A pack in place of a folder."""

    def test_a_pack_is_not_written_into(self):
        self.said("pack", "record")
        for name in "record", "record.tar.zst":
            self.assertIn("nothing is written into a pack",
                          self.refused(USAGE, "judge", f"--record={name}"))
            self.assertIn("`warpledger unpack record.tar.zst` opens it", self.refused(
                USAGE, "run", "--dry_run", "--design=ladder", f"--out={name}"))

    def test_commands_say_the_same_of_both(self):
        self.said("judge", "--record=record")
        shutil.copytree(self.record, self.path / "base")
        answers = {}
        for packed in False, True:
            if packed:
                self.said("pack", "record", "base")
            for command in (("compare", "--a=base", "--b=record"),
                            ("gate", "--baseline=base", "--record=record"),
                            ("ratchet", "--baseline=record"),
                            ("report", "--record=record", "--out=out", "--noplots"),
                            ("techniques", "--record=record", "--out=out"),
                            ("standings", "--record=record", "--out=out", "--noplots"),
                            ("run", "--dry_run", "--design=ladder", "--record=record")):
                result = self.run_program(*command)
                files = {name: content for name, content in self.files().items()
                         if name.startswith("out/")}
                shutil.rmtree(self.path / "out", ignore_errors=True)
                answers.setdefault(command, []).append(
                    (result.returncode, result.stdout, result.stderr, files))
        self.assertEqual(len(answers), 7)
        for command, (plain, packed) in answers.items():
            with self.subTest(command=command):
                self.assertEqual(plain, packed)


    def test_a_bundle_holds_the_pack_and_replays_it(self):
        self.said("pack", "record")
        self.said("bundle", "--record=record", "--out=b.tar.gz", f"--python={sys.executable}")
        with tarfile.open(self.path / "b.tar.gz") as tar:
            self.assertIn("b/data/record.tar.zst", tar.getnames())
            tar.extractall(self.path)
        self.ends(self.call(sys.executable, "b/replay.py"), OK,
                  out="reports of 1 records come out the same")


class Damaged(PackTest):
    def assert_refused(self, data, *named):
        """Both readers refuse the pack, and name it and what does not fit."""
        shutil.rmtree(self.record, ignore_errors=True)
        self.pack.write_bytes(data)
        program = self.refused(DAMAGED, "judge", "--record=record", "--out=out.json")
        self.refused(DAMAGED, "unpack", "record.tar.zst")
        with self.assertRaises(record_files.RecordError) as raised:
            record_files.open_record(self.pack)
        for said in program, str(raised.exception):
            for name in ("record.tar.zst", *named):
                self.assertIn(name, said)

    def test_a_whole_one_of_the_fixture_is_read(self):
        files = self.contents()
        shutil.rmtree(self.record)
        self.pack.write_bytes(pack_fixture.pack("record", files))
        self.summary("record")
        self.assertIn("run.json", record_files.open_record(self.pack))

    def test_a_changed_digit_of_a_sample_is_found(self):
        files = self.contents()
        sums = pack_fixture.sums_of(files)
        files["samples.jsonl"] = files["samples.jsonl"].replace(b'"us": 10', b'"us": 11', 1)
        self.assert_refused(pack_fixture.compressed(
            pack_fixture.members_of("record", files, sums)), "samples.jsonl is not what SHA256SUMS")

    def test_a_pack_by_columns_of_the_fixture_is_read(self):
        self.sum_lines()
        files = self.contents()
        shutil.rmtree(self.record)
        self.pack.write_bytes(pack_fixture.compressed(pack_fixture.members_of(
            "record", pack_fixture.by_columns(files), pack_fixture.sums_of(files))))
        self.summary("record")
        self.assertEqual(record_files.open_record(self.pack).bytes("samples.jsonl"),
                         files["samples.jsonl"])

    def test_columns_that_are_damaged_are_refused(self):
        self.sum_lines()
        files = self.contents()
        sums = pack_fixture.sums_of(files)
        name = "samples.jsonl.columns"
        members = pack_fixture.by_columns(files)
        whole = members[name]
        count, text = whole.split(b"\n", 1)
        for damage, content, why in (
                ("a changed digit", whole.replace(b'"us": 10', b'"us": 11', 1), "SHA256SUMS"),
                ("a sum that stands there", whole.replace(b'"sum":""', b'"sum":"0"', 1), "SHA256SUMS"),
                ("a piece more", whole + b"}\n", "its columns go on behind its lines"),
                ("a line less", b"%d\n" % (int(count) - 1) + text, "its columns go on behind its lines"),
                ("a line more", b"%d\n" % (int(count) + 1) + text, "its columns "),
                ("an end", whole[:whole.rindex(b",") + 1], "its columns end before its lines"),
                ("half a piece", whole[:-1], "number of lines or pieces"),
                ("no number", text, "number of lines or pieces"),
                ("an empty number", b"\n" + text, "number of lines or pieces"),
                ("a zero in front", b"0" + whole, "number of lines or pieces"),
                ("another script's digit", "\u0661\n".encode() + text, "number of lines or pieces"),
                ("more lines than pieces", b"999999999\n" + text, "number of lines or pieces"),
                ("a number too long", b"1" * 5000 + b"\n" + text, "number of lines or pieces"),
                ("only a number", count, "number of lines or pieces"),
                ("too many pieces", b"1\n" + b"\n" * (record_files.MOST_PIECES + 1),
                 "number of lines or pieces"),
                ("nothing", b"", "number of lines or pieces")):
            with self.subTest(damage):
                self.assert_refused(pack_fixture.compressed(pack_fixture.members_of(
                    "record", members | {name: content}, sums)), "samples.jsonl", why)

    def test_a_member_by_columns_has_the_name_of_a_file(self):
        files = self.contents()
        columns = pack_fixture.columns_of(b"{}\n")
        members = pack_fixture.members_of("record", files)
        for name in ("samples.jsonl.columns", "SHA256SUMS.columns", "x.columns.columns", ".columns"):
            with self.subTest(name):
                self.assert_refused(pack_fixture.compressed(
                    [*members, pack_fixture.member(f"record/{name}", columns)]), name)
        with self.subTest("the first"):
            self.assert_refused(pack_fixture.compressed(
                [pack_fixture.member("record/SHA256SUMS.columns", columns), *members[1:]]))

    def test_a_missing_and_an_additional_member_are_named(self):
        files = self.contents()
        sums = pack_fixture.sums_of(files)
        self.assert_refused(pack_fixture.compressed(pack_fixture.members_of(
            "record", {k: v for k, v in files.items() if k != "correctness.jsonl"}, sums)),
            "correctness.jsonl is missing")
        self.assert_refused(pack_fixture.compressed(pack_fixture.members_of(
            "record", files | {"peers.json": b"{}"}, sums)), "peers.json has no line")

    def test_every_flipped_bit_is_found(self):
        # Without the frame's checksum, so that what is behind it is reached too.
        tar = zstandard.ZstdDecompressor().decompress(
            pack_fixture.pack("record", self.contents()))
        whole = zstandard.ZstdCompressor().compress(tar)
        shutil.rmtree(self.record)
        found = 0
        for at in range(0, len(whole), len(whole) // 40):
            data = bytearray(whole)
            data[at] ^= 1 << at % 8
            self.pack.write_bytes(data)
            result = self.run_program("judge", "--record=record", "--out=out.json")
            read = None
            try:
                read = record_files.open_record(self.pack)
            except record_files.RecordError:
                found += 1
            # A bit that says nothing of the contents may be read over.
            self.assertIn(result.returncode, (OK, DAMAGED), result.stderr)
            self.assertEqual(read is None, result.returncode == DAMAGED, result.stderr)
        self.assertGreater(found, 35)

    def test_one_that_is_cut_off_or_goes_on_is_refused(self):
        whole = pack_fixture.pack("record", self.contents())
        for data in whole[:-1], whole[:len(whole) // 2], b"", whole + b"x", whole + whole:
            self.assert_refused(data)

    def test_a_bomb_is_refused_before_it_is_unpacked(self):
        frame = zstandard.ZstdCompressor().compressobj()
        zeros = bytes(1 << 20)
        bomb = b"".join([frame.compress(zeros) for _ in range(4096)] + [frame.flush()])
        self.assertLess(len(bomb), 1 << 20)
        self.assert_refused(bomb, f"more than {record_files.MOST_BYTES} bytes")

    def test_nothing_but_plain_files_of_one_record_is_accepted(self):
        files = self.contents()
        members = pack_fixture.members_of("record", files)
        member = pack_fixture.member
        for name, wrong in {
                "a link": [*members, member("record/x", type=tarfile.SYMTYPE, linkname="/etc/passwd")],
                "a hard link": [*members, member("record/x", type=tarfile.LNKTYPE,
                                                 linkname="record/run.json")],
                "a folder": [*members, member("record/x", type=tarfile.DIRTYPE)],
                "a device": [*members, member("record/x", type=tarfile.CHRTYPE)],
                "a parent": [*members, member("record/../x")],
                "only parents": [*members, member("../x")],
                "a root": [*members, member("/x")],
                "a subfolder": [*members, member("record/a/x")],
                "no folder": [*members, member("x")],
                "a hidden file": [*members, member("record/.x")],
                "another record": [*members, member("other/x")],
                "a file twice": [*members, members[1]],
                "sums twice": [*members, members[0]],
                "sums last": [*members[1:], members[0]],
                "no sums": members[1:],
                "no file": members[:1],
                "nothing": []}.items():
            with self.subTest(name):
                self.assert_refused(pack_fixture.compressed(wrong))
