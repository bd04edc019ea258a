# SPDX-License-Identifier: Apache-2.0
"""ablations/subjects/sdpa/peers: stays before a host that is slow or stops, and energy."""

import threading
import time
import unittest
from unittest import mock

from peers_request import peer_gpu

LAUNCHES = 4


class SlowHost:
    """A stream of invented times; the host's and the GPU's clocks, in ms, begin together."""

    def __init__(self, replay_ms=1.0, submit_ms=0.01, stops_every_ms=0, stops_for_ms=0):
        self.replay_ms, self.submit_ms = replay_ms, submit_ms
        self.stops_every_ms, self.stops_for_ms = stops_every_ms, stops_for_ms
        self.stops_at_ms = stops_every_ms
        self.host_ms = self.gpu_ms = self.idle_ms = 0.0
        self.at_ms, self.stamps, self.records = {}, [], 0

    def spend(self, ms):
        """What the host does beside; it may stop meanwhile."""
        self.host_ms += ms
        if self.stops_every_ms and self.host_ms >= self.stops_at_ms:
            self.host_ms += self.stops_for_ms
            self.stops_at_ms = self.host_ms + self.stops_every_ms

    def submit(self):
        self.spend(self.submit_ms)
        if "begin" in self.at_ms:
            self.idle_ms += max(0.0, self.host_ms - max(self.gpu_ms, self.at_ms["begin"]))
        self.gpu_ms = max(self.gpu_ms, self.host_ms) + self.replay_ms

    def record(self, event):
        self.spend(0.001)
        self.records += 1
        self.at_ms[event] = max(self.gpu_ms, self.host_ms)

    def wait(self, event):
        self.spend(0.001)
        self.host_ms = max(self.host_ms, self.at_ms[event])

    def is_past(self, event):
        self.spend(0.001)
        return self.host_ms >= self.at_ms[event]

    def ms_between(self, start, end):
        return self.at_ms[end] - self.at_ms[start]

    def stamp(self, which):
        self.stamps.append(which)

    def now(self):
        return self.host_ms / 1000


class StayTest(unittest.TestCase):
    def stay(self, host, answer_ms=0.0, estimate=1.0):
        """Half a second, and then a window of two; (sample, the idle share as it was)."""
        self.asked = 0

        def ask():
            self.asked += 1
            host.spend(answer_ms)
            if not host.stamps and host.host_ms >= 500:
                return "begin"
            return "end" if host.host_ms >= 2500 else None
        sample = peer_gpu.Stay(host, estimate * host.replay_ms / 1000, LAUNCHES).on(ask)
        self.assertEqual(host.stamps, [0, 1])
        return sample, host.idle_ms / (1000 * sample["window_s"])

    def check_time(self, host, **how):
        sample, _ = self.stay(host, **how)
        self.assertAlmostEqual(sample["us"] * LAUNCHES / (1000 * host.replay_ms), 1, 6)
        self.assertLess(sample["idle_share"], 0.001)
        self.assertAlmostEqual(sample["window_s"], 2, delta=0.1)

    def test_times_the_replays_of_its_window(self):
        for replay_ms in (0.25, 1.0, 7.0):
            self.check_time(SlowHost(replay_ms))

    def test_loses_nothing_to_a_host_that_stops_for_less_than_the_queue(self):
        for replay_ms in (0.25, 1.0, 7.0):
            self.check_time(SlowHost(replay_ms, stops_every_ms=137, stops_for_ms=80))

    def test_queues_enough_where_replays_take_less_than_the_first_one(self):
        self.check_time(SlowHost(stops_every_ms=137, stops_for_ms=80), estimate=5)

    def test_loses_nothing_to_answers_that_take_longer_than_replays(self):
        for answer_ms in (3.0, 30.0, 90.0):
            self.check_time(SlowHost(), answer_ms=answer_ms)

    def test_asks_by_time_and_not_by_replay(self):
        host = SlowHost(0.1)
        self.stay(host)
        self.assertLessEqual(self.asked, host.host_ms / 2 + 1)
        self.assertGreater(self.asked, host.host_ms / 5)

    def test_sees_a_host_that_stops_for_longer(self):
        sample, idle_share = self.stay(SlowHost(stops_every_ms=400, stops_for_ms=150))
        self.assertGreater(idle_share, 0.05)
        self.assertGreaterEqual(sample["idle_share"], idle_share)
        self.assertAlmostEqual(sample["idle_share"], idle_share, delta=0.01)

    def test_sees_a_host_that_is_slower_than_the_gpu(self):
        for submit_ms in (1.2, 3.0, 20.0):
            sample, idle_share = self.stay(SlowHost(submit_ms=submit_ms))
            self.assertGreater(idle_share, 0.1)
            self.assertGreaterEqual(sample["idle_share"], idle_share - 0.01)

    def test_puts_events_around_groups_of_short_replays(self):
        host = SlowHost(0.003, submit_ms=0.0005)
        self.check_time(host)
        self.assertLess(host.records, 2.7e3 + 2)  # two for 2 ms


class Load:
    """Watts on a counter that steps every 100 ms, and the clock beside it, which is asked every
    millisecond. Each nth answer takes slow_s, and is of its end."""

    def __init__(self, watts=700, slow_s=0.0, nth=30, stops_at_s=1e9, now_s=0.0337):
        self.watts, self.slow_s, self.stops_at_s, self.now_s = watts, slow_s, stops_at_s, now_s
        self.readings, self.nth = 0, nth

    def joules(self):
        self.readings += 1
        if self.readings % self.nth == 0:
            self.now_s += self.slow_s
        return self.watts * 0.1 * (min(self.now_s, self.stops_at_s) // 0.1)

    def energy(self, settle_s=0.5, window_s=1.0):
        window = peer_gpu.EnergyWindow({"settle_s": settle_s, "window_s": window_s}, self.joules)
        with mock.patch.object(peer_gpu.time, "monotonic", lambda: self.now_s):
            for _ in range(10_000):
                self.now_s += 1e-3
                if window.next() == "end":
                    return window.energy()
        return self.fail("the window has no end")


class EnergyWindowTest(unittest.TestCase):
    def test_reads_the_counter_from_step_to_step(self):
        energy = Load().energy()
        self.assertAlmostEqual(energy["energy_j"] / energy["energy_s"], 700, delta=0.002 * 700)
        self.assertAlmostEqual(energy["energy_s"], 1, delta=0.002)

    def test_reads_a_counter_whose_answers_take_their_time(self):
        for i in range(50):
            energy = Load(slow_s=0.004, nth=1, now_s=0.0007 + 0.002 * i).energy()
            self.assertAlmostEqual(energy["energy_j"] / energy["energy_s"], 700, delta=0.006 * 700)
            self.assertAlmostEqual(energy["energy_s"], 1, delta=0.01)

    def test_takes_no_step_whose_time_is_not_known(self):
        energies = [Load(slow_s=0.03, now_s=0.0007 + 0.002 * i).energy() for i in range(50)]
        known = [energy["energy_j"] / energy["energy_s"] for energy in energies if energy]
        self.assertGreaterEqual(len(known), 40)
        for watts in known:
            self.assertAlmostEqual(watts, 700, delta=0.006 * 700)

    def test_does_without_a_counter_that_stands_or_never_answers_in_time(self):
        for load in (Load(stops_at_s=0), Load(stops_at_s=0.9), Load(slow_s=0.6, nth=1)):
            self.assertEqual(load.energy(), {})
            self.assertLess(load.now_s, 5)


class WatchedWindowTest(unittest.TestCase):
    def test_answers_while_the_counter_does_not(self):
        answers, at_end = threading.Event(), threading.Event()
        readers = []

        def read():
            readers.append(threading.current_thread())
            answers.wait(20)
        begin = time.monotonic()
        window = peer_gpu.WatchedWindow(peer_gpu.EnergyWindow({"settle_s": 0, "window_s": 0}, read),
                                     at_end.set)
        self.assertEqual({window.next() for _ in range(1000)}, {None})
        self.assertLess(time.monotonic() - begin, 15)
        answers.set()
        said = []
        while "end" not in said:
            said += [what] if (what := window.next()) else []
        window.stop()
        self.assertEqual(said, ["begin", "end"])
        self.assertTrue(at_end.is_set())
        self.assertNotIn(threading.current_thread(), readers)

    def test_stops_with_its_owner(self):
        window = peer_gpu.WatchedWindow(peer_gpu.EnergyWindow({"settle_s": 50, "window_s": 1}, int), None)
        window.stop()
        self.assertIsNone(window.next())
