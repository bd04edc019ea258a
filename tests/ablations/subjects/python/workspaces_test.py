# SPDX-License-Identifier: Apache-2.0
"""Device memory that the library's kernels work with, from a driver that only notes what it is asked for."""

import threading
import types
import unittest
from unittest import mock

from sdpa_fixture import Driver


class WorkMemory(unittest.TestCase):
    def in_a_thread(self, call):
        got = []
        thread = threading.Thread(target=lambda: got.append(call()))
        thread.start()
        thread.join()
        return got[0]

    def test_is_a_streams(self):
        driver = Driver()
        first = driver.of(0, 7, 4096)
        self.assertEqual(driver.of(0, 7, 4096), first)
        self.assertEqual(self.in_a_thread(lambda: driver.of(0, 7, 4096)), first)
        self.assertEqual(len({first, driver.of(0, 8, 4096), driver.of(1, 7, 4096)}), 3)

    def test_grows_by_powers_of_two(self):
        driver = Driver()
        for total in range(128, 256000, 128):  # rows of packed sequences, of which the blocks are listed
            driver.of(0, 7, 4096 + 16 + (total // 128 + 8) * 48)
        self.assertEqual(driver.sizes, [1 << 20])
        for size in 1 << 20, (1 << 20) + 1, 2 << 20, 5 << 20, 7 << 20:
            driver.of(0, 7, size)
        self.assertEqual(driver.sizes, [1 << 20, 2 << 20, 8 << 20])

    def test_is_a_threads_where_the_stream_is(self):
        driver, both = Driver(), threading.Barrier(2)

        def call():
            both.wait()
            return driver.of(0, 2, 4096)

        got = []
        threads = [threading.Thread(target=lambda: got.append(call())) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(set(got)), 2)
        here = driver.of(0, 2, 4096)
        self.assertEqual(driver.of(0, 2, 4096), here)
        self.assertNotIn("cuCtxSynchronize", driver.calls)

    def test_of_a_thread_that_ended_is_waited_for(self):
        driver = Driver()
        # Python's own threads keep their numbers: a join() compares them.
        with mock.patch("warpledger.workspaces.threading", types.SimpleNamespace(get_ident=lambda: 5)):
            first = self.in_a_thread(lambda: driver.of(0, 2, 4096))
            self.assertNotIn("cuCtxSynchronize", driver.calls)
            self.assertEqual(self.in_a_thread(lambda: [driver.of(0, 2, 4096) for _ in range(3)]), [first] * 3)
            self.assertEqual(driver.calls.count("cuCtxSynchronize"), 1)
