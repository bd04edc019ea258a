#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the GPU tests from an install tree, on a machine that has a GPU but need
# not have this build: after `cmake --install build --prefix PREFIX`, or from
# the unpacked tarball. `./test` runs the same tests where the build is.
set -euo pipefail

usage() {
  cat <<'TEXT'
tests/gpu_tests.sh PREFIX [PYTHON]

Runs every program in PREFIX/share/warpledger/gpu_tests, then compares
`warpledger exec` with PyTorch's SDPA (needs a PYTHON with torch; default python3).
The test of every variant on every shape is most of it: its shapes are spread over
GPU_TEST_SHARDS processes at a time (default: a third of the CPU cores, at most 6).
GPU_TEST_INSTANCES=PART leaves it the instances with that part in their names.
Exit code: 0 all passed, 1 a test failed, 2 wrong use, 3 no GPU test or no GPU found.
TEXT
}

[[ ${1-} == --help || ${1-} == -h ]] && usage && exit 0
(($# >= 1 && $# <= 2)) || { usage >&2; exit 2; }
prefix=$(realpath -m "$1")
python=$(realpath -s "$(command -v "${2:-python3}")")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/.."

shopt -s nullglob
programs=("$prefix"/share/warpledger/gpu_tests/*)
((${#programs[@]} > 0)) || { echo "no GPU test in $prefix/share/warpledger/gpu_tests" >&2; exit 3; }

passed=0 failed=0
run() {
  local name=$1 status=0
  shift
  echo "== $name"
  "$@" || status=$?
  case $status in
    0) passed=$((passed + 1)) ;;
    77) echo "$name was skipped: see its reason above" >&2 && exit 3 ;;
    *) failed=$((failed + 1)) && echo "FAILED: $name (exit code $status)" ;;
  esac
}
# Times nothing, so that its parts may run side by side, and the other beside them.
readonly kSharded=forward_gpu_test
readonly kBeside=launch_gpu_test
third=$(($(nproc) / 3))
shards=${GPU_TEST_SHARDS:-$((third < 1 ? 1 : third > 6 ? 6 : third))}
[[ $shards =~ ^[1-9][0-9]*$ ]] || { echo "GPU_TEST_SHARDS=$shards: it is a number from 1 on" >&2; exit 2; }
sharded() { # the exit code is the first failure's
  local program=$1 shard status=0 pids=() logs
  logs=$(mktemp -d)
  for ((shard = 0; shard < shards; ++shard)); do
    GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard \
      timeout 500 "$program" --gtest_brief=1 >"$logs/$shard" 2>&1 &
    pids+=($!)
  done
  for ((shard = 0; shard < shards; ++shard)); do
    local code=0
    wait "${pids[shard]}" || code=$?
    cat "$logs/$shard"
    ((status != 0)) || status=$code
  done
  rm -r "$logs"
  return "$status"
}
# A test with what it prints kept until it is its turn.
logs=$(mktemp -d)
trap 'rm -r "$logs"' EXIT
beside() { # NAME COMMAND…: started now
  local name=$1
  shift
  "$@" >"$logs/$name" 2>&1 &
  started+=("$name:$!")
}
shown() { # NAME PID: its output and exit code, once it has ended
  local status=0
  wait "$2" || status=$?
  cat "$logs/$1"
  return "$status"
}

for program in "${programs[@]}"; do
  name=$(basename "$program")
  [[ $name == "$kSharded" || $name == "$kBeside" ]] ||
    run "$name" timeout 500 "$program" --gtest_brief=1
done
# By itself: some of its kernels hang until they are stopped.
mutants=$prefix/share/warpledger/check_mutant
if [[ -x $mutants ]]; then
  run mutation_gpu_test env GPU_TEST_SHARDS="$shards" timeout 500 "$python" -B \
    "$here/kernels/sdpa/mutations/mutation_gpu_test.py" "$mutants"
else
  echo "== mutation_gpu_test is left out: there is no $mutants. Where the build is, run" \
    "'cmake --build build --target check_mutant', and package again."
fi
module() { # SECONDS FILE
  WARPLEDGER_PROGRAM=$prefix/bin/warpledger PYTHONPATH=$here:$(dirname "$here/$2") \
    WARPLEDGER_SDPA_LIBRARY=$prefix/lib/libwarpledger_sdpa.so timeout "$1" "$python" -B -m unittest -v "$here/$2"
}
# It times too. It compiles what it measures, so that it has nothing to say without nvcc.
study() {
  local status=0
  module 900 ablations/subjects/study/study_gpu_test.py || status=$?
  return $((status == 77 ? 0 : status))
}
run study_gpu_test study
run profile_gpu_test module 300 ablations/subjects/sdpa/profile_gpu_test.py
run compare_gpu_test module 900 ablations/subjects/python/compare_gpu_test.py
# The rest times nothing.
started=()
program=$prefix/share/warpledger/gpu_tests/$kSharded
[[ ! -x $program ]] || beside "$kSharded" sharded "$program"
program=$prefix/share/warpledger/gpu_tests/$kBeside
[[ ! -x $program ]] || beside "$kBeside" timeout 500 "$program" --gtest_brief=1
beside exec_gpu_test module 550 ablations/subjects/sdpa/exec_gpu_test.py
beside sdpa_gpu_test module 550 ablations/subjects/python/sdpa_gpu_test.py
other_gpus() { WARPLEDGER_SDPA_KERNELS=mma module "$@"; } # by the kernels for other GPUs than 9.0
beside sdpa_mma_gpu_test other_gpus 550 ablations/subjects/python/sdpa_gpu_test.py
beside sdpa_e4m3_gpu_test module 300 ablations/subjects/python/sdpa_e4m3_gpu_test.py
beside check_gpu_test module 300 ablations/subjects/sdpa/check_gpu_test.py
for name in isolation_gpu_test calibrate_gpu_test; do
  beside "$name" module 300 "ablations/measure/$name.py"
done
for each in "${started[@]}"; do run "${each%%:*}" shown "${each%%:*}" "${each##*:}"; done
echo "$passed passed, $failed failed"
((failed == 0))
