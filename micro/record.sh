#!/usr/bin/env bash
# Runs all microbenchmarks on this machine's GPU and keeps what they say.
set -euo pipefail

usage() {
  cat <<'TEXT'
micro/record.sh OUTDIR [PREFIX]

Runs PREFIX/bin/warpledger_micro in three processes of three repetitions each and
writes into OUTDIR, which is made:
  cases.json             the program's list of cases
  micro_raw.jsonl        every sample
  micro_process<N>.json  Google Benchmark's own output
  micro.json             values, intervals and limits, by micro/record.py
  micro.md               the same as a report, with the published figures
PREFIX is an install tree or a build folder; by default the tree that holds this
script, else ./build. Needs python3, without packages.

Environment: WARPLEDGER_MICRO_FILTER, a regular expression of cases to run.
Exit codes: 0 all cases ran; 1 a case or a step failed (what ran is kept);
2 wrong use; 3 no program, or no GPU.
TEXT
}

[[ ${1-} == --help || ${1-} == -h ]] && usage && exit 0
(($# >= 1 && $# <= 2)) || { usage >&2; exit 2; }
readonly kProcesses=3 kRepetitions=3 kSecondsPerProcess=150
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$1
prefix=${2-}
if [[ -z $prefix ]]; then
  prefix=$(cd "$here/../../.." && pwd)  # PREFIX/share/warpledger/micro
  [[ -x $prefix/bin/warpledger_micro ]] || prefix=$here/../build
fi
program=$prefix/bin/warpledger_micro
[[ -x $program ]] || { echo "record.sh: no $program; build it or name PREFIX" >&2; exit 3; }

mkdir -p "$out"
if [[ -e $out/micro_raw.jsonl ]]; then
  echo "record.sh: $out holds a run already; name a new folder" >&2
  exit 2
fi
"$program" --warpledger_list >"$out/cases.json"

failed=0
for ((process = 0; process < kProcesses; ++process)); do
  echo "== process $((process + 1)) of $kProcesses" >&2
  status=0
  timeout "$kSecondsPerProcess" "$program" --warpledger_process="$process" \
    --warpledger_raw="$out/micro_raw.jsonl" --benchmark_repetitions="$kRepetitions" \
    --benchmark_filter="${WARPLEDGER_MICRO_FILTER:-.}" \
    --benchmark_out="$out/micro_process$process.json" --benchmark_out_format=json \
    >"$out/micro_process$process.log" || status=$?
  ((status != 3)) || exit 3
  if ((status == 124)); then
    echo "record.sh: process $process took more than $kSecondsPerProcess s and was stopped" >&2
  fi
  ((status == 0)) || failed=1
done

python3 "$here/record.py" collect --run "$out"
python3 "$here/record.py" report --micro "$out/micro.json" --out "$out/micro.md"
exit "$failed"
