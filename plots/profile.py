# SPDX-License-Identifier: Apache-2.0
"""A profile record's summary as its figures read it (schema: reports/RECORD.md)."""

from plots.summary import SummaryError, checked

_STALL = "smsp__average_warps_issue_stalled_"
_STALL_END = "_per_issue_active.ratio"
_LONGEST = 72  # characters of a name, for which figures have room


_SCHEMA = {"gpu": {"name": str}, "provenance": {"created_utc": str, "ncu": str},
           "ceilings": [{"name": str, "per_s": float, "of": str}],
           "shapes": [{"name": str, "flops": float}], "profiles": [{"reason": str}]}
_LAUNCH = {"shape": str, "metrics": {str: {"value": float}}, "p50_us": (float, None),
           "variant": str, "roof": (str, None)}


class ProfileSummary:
    """Launches with their counters, in the record's order; those that failed are left out."""

    def __init__(self, data):
        checked(data, _SCHEMA)
        self.gpu = data["gpu"]["name"]
        self.date = data["provenance"]["created_utc"][:10]
        self.ncu = data["provenance"]["ncu"].split(" ")[0]
        self.ceilings = {ceiling["name"]: (ceiling["per_s"], ceiling["of"])
                         for ceiling in data["ceilings"]}
        flops = {shape["name"]: shape["flops"] for shape in data["shapes"]}
        self.launches = []
        for i, profile in enumerate(data["profiles"]):
            if profile["reason"]:
                continue
            path = f"profiles[{i}]"
            shape = checked(profile, _LAUNCH, path)["shape"]
            if shape not in flops:
                raise SummaryError(f"summary.json: {path}.shape is \"{shape}\", which is not in "
                                   "shapes")
            metrics = {name: metric["value"] for name, metric in profile["metrics"].items()}
            us = profile["p50_us"]
            l2_bytes = metrics.get("lts__t_bytes.sum")
            self.launches.append({
                "variant": profile["variant"], "shape": shape,
                "flop_per_s": flops[shape] / (us * 1e-6) if us else None,
                # The name of the ceiling of its arithmetic; None for a configuration of old.
                "roof": profile["roof"],
                "flop_per_l2_byte": flops[shape] / l2_bytes if l2_bytes else None,
                "stalls": {name.removeprefix(_STALL).removesuffix(_STALL_END): value
                           for name, value in metrics.items() if name.startswith(_STALL)}})
        if not self.launches:
            raise SummaryError("summary.json: no launch was profiled, so there is nothing to draw")

    def shape_names(self):
        return list(dict.fromkeys(launch["shape"] for launch in self.launches))


def short(variant):
    """The variant without its design, unless that leaves a bare level, as of `mma_layout:2`; of a configuration of many
    toggles the first and the last two."""
    name = variant.split(":", 1)[-1]
    if len(name) > _LONGEST:
        first, *_, last_but_one, last = name.split("+")
        return f"{first}+…+{last_but_one}+{last}"
    return variant if name == "off" or name.isdecimal() else name


def short_names(variants):
    """{variant: short(variant)}, and the whole name of those that would have the same."""
    shorts = [short(variant) for variant in variants]
    return {variant: variant if shorts.count(name) > 1 else name for variant, name in zip(variants, shorts)}
