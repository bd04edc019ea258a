#!/usr/bin/env bash
# Runs compute-sanitizer's four tools over every variant at small and ragged
# shapes. Needs a GPU and the CUDA toolkit's compute-sanitizer.
set -euo pipefail

usage() {
  cat <<'TEXT'
tests/sanitizers.sh [WARPLEDGER]

memcheck, racecheck, initcheck and synccheck on every variant. WARPLEDGER is the
program (default build/bin/warpledger).
Exit code: 0 clean, 1 a tool found something, 2 wrong use, 3 no compute-sanitizer.
TEXT
}

[[ ${1-} == --help || ${1-} == -h ]] && usage && exit 0
(($# <= 1)) || { usage >&2; exit 2; }
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=${1:-$root/build/bin/warpledger}
sanitizer=$(command -v compute-sanitizer || true)
[[ -n $sanitizer ]] || sanitizer=/usr/local/cuda/bin/compute-sanitizer
[[ -x $sanitizer ]] || { echo "compute-sanitizer is not here; it is part of the CUDA toolkit" >&2; exit 3; }

shapes=small,tiny_multi,ragged_1x1,ragged_33x65,ragged_33x65_causal,ragged_799x3_causal,gqa_4to1,mqa_8to1,ragged_fusion
log=$(mktemp)
trap 'rm -f "$log"' EXIT
found=0
for tool in memcheck racecheck initcheck synccheck; do
  echo "== $tool on $shapes"
  status=0
  timeout 550 "$sanitizer" --tool "$tool" --error-exitcode 9 --print-limit 5 \
    "$program" check --shapes="$shapes" --inputs=normal --seeds=1 >"$log" 2>&1 || status=$?
  tail -n 4 "$log"
  # racecheck's warnings leave the exit code alone, so its summary is read too.
  if ((status != 0)) || ! grep -qE 'SUMMARY: 0 (errors|hazards)' "$log"; then
    found=1
    grep -m 20 '=========' "$log" || true
    echo "FOUND by $tool (exit code $status)"
  fi
done
((found == 0)) && echo "clean: memcheck, racecheck, initcheck, synccheck"
exit "$found"
