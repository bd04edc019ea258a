#!/usr/bin/env bash
# Reads hardware counters of variants with Nsight Compute, into one CSV file.
# Needs a GPU and ncu. Clocks are left alone; times under a profiler are no times.
set -euo pipefail

usage() {
  cat <<'TEXT'
ablations/profile.sh OUT.csv SHAPE VARIANT[,VARIANT...] [WARPLEDGER]

One launch of each variant on SHAPE, random inputs. WARPLEDGER is the program
(default build/bin/warpledger). Writes OUT.csv: variant, shape, metric, unit, value.
Exit code: 0 written, 1 a profile failed (nothing is written), 2 wrong use, 3 no ncu.
TEXT
}

[[ ${1-} == --help || ${1-} == -h ]] && usage && exit 0
(($# == 3 || $# == 4)) || { usage >&2; exit 2; }
out=$1 shape=$2 variants=$3
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=${4:-$root/build/bin/warpledger}
ncu=$(command -v ncu || true)
[[ -n $ncu ]] || ncu=/usr/local/cuda/bin/ncu
[[ -x $ncu ]] || { echo "ncu is not here; it is part of the CUDA toolkit (Nsight Compute)" >&2; exit 3; }

# What bounds the kernel: time, warps, issue slots, L1, L2, shared memory, tensor pipe.
metrics=(
  gpu__time_duration.sum
  sm__warps_active.avg.pct_of_peak_sustained_active
  smsp__issue_active.avg.pct_of_peak_sustained_active
  smsp__inst_executed.sum
  l1tex__throughput.avg.pct_of_peak_sustained_elapsed
  l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum
  l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum
  l1tex__data_pipe_lsu_wavefronts_mem_shared.sum
  l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum
  lts__t_bytes.sum
  dram__bytes.sum
  sm__inst_executed_pipe_tensor.sum
  smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio
  smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio
  smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio
  smsp__average_warps_issue_stalled_wait_per_issue_active.ratio
  smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio
  smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio
)
joined=$(IFS=,; echo "${metrics[*]}")

part=$out.part
trap 'rm -f "$part" "$part.raw"' EXIT
echo "variant,shape,metric,unit,value" >"$part"
IFS=, read -r -a names <<<"$variants"
for variant in "${names[@]}"; do
  echo "profiling $variant on $shape" >&2
  timeout 300 "$ncu" --clock-control none --kernel-name regex:sdpa --launch-count 1 --csv \
    --metrics "$joined" "$program" check --variants="$variant" --shapes="$shape" \
    --inputs=normal --seeds=1 >"$part.raw"
  python3 - "$variant" "$shape" "$part.raw" "${#metrics[@]}" >>"$part" <<'PYTHON'
import csv, sys
variant, shape, raw, wanted = sys.argv[1:]
lines = open(raw, encoding="utf-8").read().splitlines()
start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
if start is None:
    sys.exit(f"ncu gave no counters for {variant}:\n" + "\n".join(lines[-5:]))
rows = [row for row in csv.DictReader(lines[start:]) if row.get("Metric Name")]
if len(rows) != int(wanted):
    sys.exit(f"ncu gave {len(rows)} of {wanted} metrics for {variant}")
writer = csv.writer(sys.stdout, lineterminator="\n")
for row in rows:
    writer.writerow([variant, shape, row["Metric Name"], row["Metric Unit"],
                     row["Metric Value"].replace(",", "")])
PYTHON
done
mv "$part" "$out"
echo "Wrote $out" >&2
