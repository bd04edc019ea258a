# SPDX-License-Identifier: Apache-2.0
"""A profile record's summary as its figures read it (schema: reports/RECORD.md)."""

from plots.summary import SummaryError, field, number

_STALL = "smsp__average_warps_issue_stalled_"
_STALL_END = "_per_issue_active.ratio"


class ProfileSummary:
    """Launches with their counters, in the record's order; those that failed are left out."""

    def __init__(self, data):
        gpu = field(data, "", "gpu", dict)
        self.gpu = field(gpu, "gpu", "name", str)
        provenance = field(data, "", "provenance", dict)
        self.date = field(provenance, "provenance", "created_utc", str)[:10]
        self.ncu = field(provenance, "provenance", "ncu", str).split(" ")[0]
        self.ceilings = {}
        for i, ceiling in enumerate(field(data, "", "ceilings", list)):
            path = f"ceilings[{i}]"
            self.ceilings[field(ceiling, path, "name", str)] = (
                field(ceiling, path, "per_s", (int, float)), field(ceiling, path, "of", str))
        flops = {}
        for i, shape in enumerate(field(data, "", "shapes", list)):
            flops[field(shape, f"shapes[{i}]", "name", str)] = field(
                shape, f"shapes[{i}]", "flops", (int, float))
        self.launches = []
        for i, profile in enumerate(field(data, "", "profiles", list)):
            path = f"profiles[{i}]"
            if field(profile, path, "reason", str):
                continue
            shape = field(profile, path, "shape", str)
            if shape not in flops:
                raise SummaryError(f"summary.json: {path}.shape is \"{shape}\", which is not in "
                                   "shapes")
            metrics = {name: field(metric, f"{path}.metrics.{name}", "value", (int, float))
                       for name, metric in field(profile, path, "metrics", dict).items()}
            us = number(profile, path, "p50_us")
            l2_bytes = metrics.get("lts__t_bytes.sum")
            self.launches.append({
                "variant": field(profile, path, "variant", str), "shape": shape,
                "flop_per_s": flops[shape] / (us * 1e-6) if us else None,
                # The name of the ceiling of its arithmetic; None for a configuration of old.
                "roof": field(profile, path, "roof", str, nullable=True),
                "flop_per_l2_byte": flops[shape] / l2_bytes if l2_bytes else None,
                "stalls": {name.removeprefix(_STALL).removesuffix(_STALL_END): value
                           for name, value in metrics.items() if name.startswith(_STALL)}})
        if not self.launches:
            raise SummaryError("summary.json: no launch was profiled, so there is nothing to draw")

    def shape_names(self):
        return list(dict.fromkeys(launch["shape"] for launch in self.launches))


def short(variant):
    """The variant without its design, unless that leaves a bare level, as of `mma_layout:2`."""
    name = variant.split(":", 1)[-1]
    return variant if name == "off" or name.isdecimal() else name
