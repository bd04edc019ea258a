# SPDX-License-Identifier: Apache-2.0
"""What a GPU does meanwhile, and how long to keep it at work: sensors, its clock, its joules, stays.

The same as in our own worker, which is in C++.
"""

import ctypes
import math
import threading
import time


class EnergyWindow:
    """When the window of a stay begins and ends: at steps of an energy counter.

    ablations/measure/energy_window.h has the contract; this is the same for peers.
    """

    PATIENCE_S = 0.5
    SHARP_S = 0.02

    def __init__(self, plan, read):
        self._plan, self._read = plan, read
        self._arrived = self._begin = self._last = self._first_step = self._last_step = None
        self._counts = True

    def next(self):
        """"begin" or "end" where the window does, else None."""
        now = time.monotonic()
        if self._arrived is None:
            self._arrived = now
        if self._begin is None:
            settled = self._arrived + self._plan["settle_s"]
            if now < settled:
                return None
            is_edge, self._first_step = self._edge(settled, now)
            if not is_edge:
                return None
            self._begin = now
            return "begin"
        # A window of ten steps ends with the tenth, whenever in a millisecond that shows.
        early = self.SHARP_S if self._counts else 0
        whole = self._begin + self._plan["window_s"] - early
        is_edge, self._last_step = self._edge(whole, now)
        return "end" if is_edge else None

    def _edge(self, since, now):
        """Whether the window may begin or end now, which it might since then, and the step."""
        step = self._next_step() if self._counts else None
        if now < since:
            return False, None
        if step is None and now - since > self.PATIENCE_S:
            self._counts = False
        return step is not None or not self._counts, step

    def _next_step(self):
        """(when, joules) of a step that is known to SHARP_S, if there was one."""
        asked, joules = time.monotonic(), self._read()
        answered = time.monotonic()
        if joules is None:
            self._counts = False
            return None
        last, self._last = self._last, (asked, joules)
        if last is None or joules == last[1] or answered - last[0] > self.SHARP_S:
            return None
        return (last[0] + answered) / 2, joules

    def energy(self):
        """What a sample says of it; nothing where there was no counter."""
        if None in (self._first_step, self._last_step):
            return {}
        return {"energy_j": self._last_step[1] - self._first_step[1],
                "energy_s": self._last_step[0] - self._first_step[0]}


class WatchedWindow:
    """A window whose counter a thread of its own reads: next() never waits for NVML, which may take
    longer for an answer than the GPU has work queued. `at_end` is called in that thread."""

    READ_EVERY_S = 0.001  # after each answer

    def __init__(self, window, at_end):
        self._window, self._at_end = window, at_end
        self._begun, self._ended, self._told = False, False, False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self):
        while not self._stop.is_set():
            what = self._window.next()
            if what == "begin":
                self._begun = True
            if what == "end":
                self._at_end()
                self._ended = True
                return
            self._stop.wait(self.READ_EVERY_S)

    def next(self):
        if self._begun and not self._told:
            self._told = True
            return "begin"
        return "end" if self._ended else None

    def stop(self):
        """Waits for the thread."""
        self._stop.set()
        self._thread.join()


class Stay:
    """Replays without a pause, a part of them timed: the same as micro/harness/stay.h, which has
    the contract. `stream` has submit(), record(i), wait(i), is_past(i), ms_between(i, j) of events
    with any number, stamp(0 or 1) of the clock, and the host's now() in seconds."""

    QUEUED_S = 0.1
    GROUP_S = 0.002
    ASK_EVERY_S = 0.002
    MOST_GROUPS = 256
    SLOTS = MOST_GROUPS + 1

    def __init__(self, stream, replay_s, launches):
        self._stream, self._launches = stream, launches
        self._replays = max(1, math.ceil(self.GROUP_S / max(replay_s, 1e-9)))  # of a group
        self._fastest_s = self._replays * replay_s
        self._groups = {}  # slot: (event that its wait began with or None, late_ms)
        self._submitted = self._retired = self._timed = 0
        self._begun, self._idle_ms = None, 0.0

    def on(self, ask):
        """Until `ask` has said "begin" and "end"; what a sample says of the window."""
        stream, ask_at = self._stream, -math.inf
        while True:
            if stream.now() >= ask_at:
                what, ask_at = ask(), stream.now() + self.ASK_EVERY_S
                if what == "begin":
                    stream.stamp(0)
                    stream.record("begin")
                    self._begun = self._submitted
                if what == "end" and self._timed > 0:  # a window holds a replay at least
                    break
            # A replay takes less at a higher clock: the fastest says how many are enough.
            depth = math.ceil(self.QUEUED_S / max(self._fastest_s, 1e-9))
            while self._submitted - self._retired < min(max(2, depth), self.MOST_GROUPS):
                self._submit_group()
            self._retire()
            while self._retired < self._submitted and stream.is_past(self._after(self._retired)):
                self._retire()
        stream.record("end")
        stream.stamp(1)
        while self._retired < self._submitted:
            self._retire()
        stream.wait("end")
        ms = stream.ms_between("begin", "end")
        return {"us": 1000.0 * ms / self._timed, "launches": self._timed, "window_s": ms / 1000.0,
                "idle_share": min(1.0, self._idle_ms / ms)}

    def _before(self, group):
        return 2 * (group % self.SLOTS)

    def _after(self, group):
        return self._before(group) + 1

    def _submit_group(self):
        stream, group, now = self._stream, self._submitted, self._stream.now()
        stream.record(self._before(group))
        for _ in range(self._replays):
            stream.submit()
        stream.record(self._after(group))
        waits_from = None
        if self._begun is not None:
            waits_from = "begin" if self._begun == group else self._after(group - 1)
            self._timed += self._launches * self._replays
        late = group > 0 and stream.is_past(self._after(group - 1))
        self._groups[group % self.SLOTS] = waits_from, 1000 * (stream.now() - now) if late else 0
        self._submitted += 1

    def _retire(self):
        """Waits for the oldest group, and counts what the stream waited for it."""
        stream, group = self._stream, self._retired
        stream.wait(self._after(group))
        took_ms = stream.ms_between(self._before(group), self._after(group))
        self._fastest_s = min(self._fastest_s, took_ms / 1000)
        waits_from, late_ms = self._groups[group % self.SLOTS]
        if waits_from is not None:
            self._idle_ms += late_ms + stream.ms_between(waits_from, self._before(group))
        self._retired += 1


class Sensors:
    """Clock, temperature, power and clock event reasons through NVML.

    The functions are those of NVIDIA's NVML API reference; kernels/common/nvml.h
    reads the same in our own worker. Whatever can't be read is None.
    """

    CLOCK_SM = 1
    TEMPERATURE_GPU = 0

    def __init__(self, uuid, library=None):
        self._library = None
        self._handle = ctypes.c_void_p()
        try:
            library = library or ctypes.CDLL("libnvidia-ml.so.1")
            if (library.nvmlInit_v2() == 0 and
                    library.nvmlDeviceGetHandleByUUID(uuid.encode(),
                                                      ctypes.byref(self._handle)) == 0):
                self._library = library
        except (OSError, AttributeError):
            pass

    def read(self):
        milliwatts = self._get("nvmlDeviceGetPowerUsage", ctypes.c_uint)
        throttle = self._get("nvmlDeviceGetCurrentClocksEventReasons", ctypes.c_ulonglong)
        if throttle is None:  # the name in older drivers
            throttle = self._get("nvmlDeviceGetCurrentClocksThrottleReasons", ctypes.c_ulonglong)
        return {
            "sm_mhz": self._get("nvmlDeviceGetClockInfo", ctypes.c_uint, self.CLOCK_SM),
            "temp_c": self._get("nvmlDeviceGetTemperature", ctypes.c_uint, self.TEMPERATURE_GPU),
            "power_w": None if milliwatts is None else milliwatts / 1000,
            "throttle": throttle,
        }

    def joules(self):
        """Since the driver was loaded, in steps."""
        millijoules = self._get("nvmlDeviceGetTotalEnergyConsumption", ctypes.c_ulonglong)
        return None if millijoules is None else millijoules / 1000

    def _get(self, function, value_type, *arguments):
        value = value_type()
        try:
            # AttributeError: no library, or one without this function.
            code = getattr(self._library, function)(self._handle, *arguments, ctypes.byref(value))
        except AttributeError:
            return None
        return value.value if code == 0 else None


class ClockProbe:
    """The mean SM clock between two places of a stream, by the SMs' own counters.

    micro/harness/clock_probe.h does the same for our arms: stamps of each SM's cycle counter and of
    the global timer; the median over the SMs counts. Without CUDA's driver there is no clock.
    """

    PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry stamp(.param .u64 stamps) {
  .reg .u32 %r<3>;
  .reg .u64 %d<6>;
  ld.param.u64 %d1, [stamps];
  cvta.to.global.u64 %d1, %d1;
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %d2, %r1, 24;
  add.u64 %d1, %d1, %d2;
  mov.u32 %r2, %smid;
  cvt.u64.u32 %d3, %r2;
  mov.u64 %d4, %clock64;
  mov.u64 %d5, %globaltimer;
  st.global.u64 [%d1], %d3;
  st.global.u64 [%d1+8], %d4;
  st.global.u64 [%d1+16], %d5;
  ret;
}
"""

    def __init__(self, torch):
        self._torch = torch
        self._function = None
        try:
            self._cuda = ctypes.CDLL("libcuda.so.1")
            self._sms = torch.cuda.get_device_properties(0).multi_processor_count
            self._stamps = torch.zeros((2, self._sms, 3), dtype=torch.int64, device="cuda")
            module, function = ctypes.c_void_p(), ctypes.c_void_p()
            if (self._cuda.cuModuleLoadData(ctypes.byref(module), self.PTX) == 0 and
                    self._cuda.cuModuleGetFunction(ctypes.byref(function), module, b"stamp") == 0):
                self._function = function
        except (OSError, AttributeError):
            pass

    def stamp(self, which):
        """On the current stream; `which` is 0 at the beginning and 1 at the end."""
        if self._function is None:
            return
        place = ctypes.c_uint64(self._stamps[which].data_ptr())
        arguments = (ctypes.c_void_p * 1)(ctypes.addressof(place))
        stream = ctypes.c_void_p(self._torch.cuda.current_stream().cuda_stream)
        if self._cuda.cuLaunchKernel(self._function, self._sms, 1, 1, 1, 1, 1, 0, stream, arguments,
                                     None) != 0:
            self._function = None

    def mhz(self):
        """Once the stream is done."""
        return None if self._function is None else mhz_between(*self._stamps.tolist())


def mhz_between(begin, end):
    """The median of the SMs that stamped both, of stamps (sm, cycles, ns); None: there is none."""
    began = {sm: (cycles, ns) for sm, cycles, ns in begin}
    mhz = sorted(1000 * (cycles - began[sm][0]) / (ns - began[sm][1])
                 for sm, cycles, ns in end if sm in began and ns > began[sm][1])
    return round(mhz[len(mhz) // 2], 1) if mhz else None
