#!/usr/bin/env bash
# Runs compute-sanitizer's four tools over every variant at small and ragged
# shapes. Needs a GPU and the CUDA toolkit's compute-sanitizer.
set -euo pipefail

usage() {
  cat <<'TEXT'
tests/sanitizers.sh [WARPLEDGER] [--tools TOOL,…] [--shapes SHAPE,…] [--variants VARIANT,…]
                    [--jobs N]

memcheck, racecheck, initcheck and synccheck on every variant, a process for each
tool and shape, N at a time (default: half of the CPU cores, at most 8). WARPLEDGER
is the program (default build/bin/warpledger).
Exit code: 0 clean, 1 a tool found something, 2 wrong use, 3 no compute-sanitizer.
TEXT
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=$root/build/bin/warpledger
tools=memcheck,racecheck,initcheck,synccheck
shapes=small,tiny_multi,ragged_1x1,ragged_33x65,ragged_33x65_causal,ragged_799x3_causal,gqa_4to1,mqa_8to1
shapes+=,ragged_33x65_d128,gqa_4to1_d128,ragged_33x65_d256,gqa_4to1_d256,ragged_33x65_bf16
shapes+=,gqa_4to1_d128_bf16,ragged_fusion
variants=all
jobs=$(($(nproc) / 2))
jobs=$((jobs < 1 ? 1 : jobs > 8 ? 8 : jobs))
while (($# > 0)); do
  case $1 in
    --help | -h) usage && exit 0 ;;
    --tools | --shapes | --variants | --jobs)
      (($# >= 2)) || { echo "sanitizers.sh: $1 needs a value" >&2; exit 2; }
      declare "${1#--}=$2"
      shift
      ;;
    -*) usage >&2; exit 2 ;;
    *) program=$1 ;;
  esac
  shift
done
sanitizer=$(command -v compute-sanitizer || true)
[[ -n $sanitizer ]] || sanitizer=/usr/local/cuda/bin/compute-sanitizer
[[ -x $sanitizer ]] || { echo "compute-sanitizer is not here; it is part of the CUDA toolkit" >&2; exit 3; }

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
export sanitizer program variants logs

# racecheck's warnings leave the exit code alone, so its summary is read too.
examine() { # TOOL SHAPE: a line, and on a finding the log's head; fails on a finding
  local log=$logs/$1-$2 status=0 started=$SECONDS
  timeout 550 "$sanitizer" --tool "$1" --error-exitcode 9 --print-limit 5 \
    "$program" check --shapes="$2" --variants="$variants" --inputs=normal --seeds=1 >"$log" 2>&1 || status=$?
  if ((status == 0)) && grep -qE 'SUMMARY: 0 (errors|hazards)' "$log"; then
    echo "$1 on $2: clean, $(grep -oE '[0-9]+ checks' "$log" | tail -n 1), $((SECONDS - started)) s"
    return 0
  fi
  echo "$1 on $2: FOUND (exit code $status after $((SECONDS - started)) s)"
  grep -m 20 '=========' "$log" || tail -n 5 "$log"
  return 1
}
export -f examine

# The slowest first.
pairs=$(for tool in ${tools//,/ }; do
  for shape in ${shapes//,/ }; do echo "$tool $shape"; done
done | sort -s -k1,1r)
status=0
# shellcheck disable=SC2016  # the inner shell expands them
xargs -P "$jobs" -L 1 bash -c 'examine "$0" "$1"' <<<"$pairs" || status=$?
((status == 0)) || { echo "a tool found something" >&2; exit 1; }
echo "clean: ${tools//,/, }"
