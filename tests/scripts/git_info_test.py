# SPDX-License-Identifier: Apache-2.0
"""cmake/git_info.cmake: which commit a build says it is of."""

import os
import subprocess

from fixture import ROOT, FolderTest

SCRIPT = ROOT / "cmake" / "git_info.cmake"


class GitInfo(FolderTest):
    def setUp(self):
        super().setUp()
        self.root = self.path / "repository"
        (self.root / "kernels").mkdir(parents=True)
        self.environment = {key: value for key, value in os.environ.items()
                            if not key.startswith("GIT_")}
        self.environment["GIT_CEILING_DIRECTORIES"] = str(self.path)

    def in_root(self, *arguments):
        return subprocess.run(arguments, cwd=self.root, env=self.environment, check=True,
                              capture_output=True, text=True).stdout.strip()

    def commit(self):
        (self.root / "kernels/code").write_text("1", encoding="utf-8")
        self.in_root("git", "init", "-q")
        self.in_root("git", "add", ".")
        self.in_root("git", "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "-m", "x")
        return self.in_root("git", "rev-parse", "HEAD")

    def written(self, sources):
        out = self.path / "git_info.h"
        self.in_root("cmake", f"-DSOURCE_DIR={sources}", f"-DOUT={out}", "-P", str(SCRIPT))
        return out.read_text(encoding="utf-8")

    def test_names_the_commit_and_whether_measured_files_changed(self):
        sha = self.commit()
        text = self.written(self.root)
        self.assertIn(f'kGitSha[] = "{sha}"', text)
        self.assertIn("kGitDirty = false", text)
        (self.root / "kernels/code").write_text("2", encoding="utf-8")
        self.assertIn("kGitDirty = true", self.written(self.root))

    def test_a_link_to_the_sources_is_the_sources(self):
        sha = self.commit()
        link = self.path / "link"
        link.symlink_to(self.root)
        self.assertIn(sha, self.written(link))

    def test_sources_inside_another_repository_are_of_no_commit(self):
        self.commit()
        inside = self.root / "unpacked"
        inside.mkdir()
        text = self.written(inside)
        self.assertIn('kGitSha[] = "unknown"', text)
        self.assertIn("kGitDirty = false", text)

    def test_sources_without_a_repository_are_of_no_commit(self):
        self.assertIn('kGitSha[] = "unknown"', self.written(self.root))
