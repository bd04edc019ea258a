#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records on this machine's GPU what reports/ is made of.
set -euo pipefail

usage() {
  cat <<'TEXT'
reports/record.sh OUTDIR [--only SET[,SET…]] [--gpus N] [--prefix PREFIX]
                  [--python PYTHON] [--dry_run] [-- FLAGS]
reports/record.sh --list

Measures each set as a task of a fleet (`warpledger help fleet`) in OUTDIR. After a
stop, the same call measures only what is left. If a set fails, the other sets are
still measured. `warpledger merge --fleet=OUTDIR --out=DIR` writes the records as
DIR/<gpu>/<set>-<time>.tar.zst: copy them into reports/data/<gpu>, then run
reports/regenerate.py.

  --only SET,…     only these sets, in this order; folklore: all studies
  --gpus N         on N GPUs at a time (default: 1); 0: none, OUTDIR/fleet.sbatch
                   is for sbatch
  --prefix PREFIX  an install tree or a build folder (default: build)
  --python PYTHON  has PyTorch, whose attention is timed beside ours (default: python3)
  --dry_run        only say what each set takes
  -- FLAGS         further flags of `warpledger fleet`, say --processes=3

Microbenchmarks: micro/record.sh. Profiles: `warpledger profile`. Calibration:
`warpledger calibrate`.

Exit codes: 0 all sets are whole; 1 a set failed; 2 wrong use; 3 no program.
TEXT
}

# set | design | shapes | flags. ladder_cold lacks `small`, which would take too many input sets.
# More processes decide more than more blocks (reports/decisions/0002): five are the default, and
# the families of a hundred verdicts and more have eight, of four blocks each, because a call
# takes milliseconds there. The slowest sets take some fourteen minutes on an H200.
# A study is one of ablations/studies. It needs nvcc, and NumPy in WARPLEDGER_PYTHON.
readonly kSquare=b2_h8_s256_d64,b1_h8_s512_d64,long
readonly kLargest=fa3_d64_s8192_full,fa3_d64_s8192_causal,fa3_d128_s8192_full,fa3_d128_s8192_causal,fa3_d256_s8192_full,fa3_d256_s8192_causal
# Each contender alone (reports/decisions/0045). FlashAttention-3's library is what WARPLEDGER_FA3
# names, and FlashAttention-4 is the package flash-attn-4; where one is missing, the record says so.
# cudnn_fp8 is the package nvidia-cudnn-frontend.
readonly kAlone="--alone --peers=cudnn,fa3,fa4"
readonly kFlash2=fa3_d64_s2048_full,fa3_d64_s2048_causal,fa3_d64_s8192_full,fa3_d64_s8192_causal
# Without the one whose slowest kernel takes over a second a call.
readonly kFlash2Slow=fa3_d64_s2048_full,fa3_d64_s2048_causal,fa3_d64_s8192_causal
readonly kFlash2D128=fa3_d128_s2048_full,fa3_d128_s2048_causal,fa3_d128_s8192_full,fa3_d128_s8192_causal
lengths() { # of a head dimension, full and causal
  local shapes="" length
  for length in ${2:-512 1024 2048 4096 8192 16384}; do
    shapes+=",fa3_d${1}_s${length}_full${3:-},fa3_d${1}_s${length}_causal${3:-}"
  done
  echo "${shapes#,}"
}
# The library's kernels on problems of reports/random_problems.py. kernels/sdpa/library/fit_costs.py
# fits costs to all of them but the last, on which its choice is checked.
random() { # SET SEED COUNT [KINDS] [HEAD_DIMS]: a set of each head_dim
  local head_dim
  for head_dim in ${5:-64 128 256}; do
    echo "$1_d$head_dim|library_d$head_dim|random:$head_dim:$2:$3:${4-}|--processes=1 --blocks=3 --peers=off"
  done
}
readonly kSets="
$(random library 281102 50)
$(random library_other 281101 50)
$(random library_third 281103 50)
$(random library_fourth 281104 70)
$(random library_fifth 281105 70)
$(random library_sixth 281106 70)
$(random library_seventh 281107 70)
$(random library_few 281108 120 decode,few,small "64 128")
$(random library_check 281109 70)
ladder|ladder|ladder|
ladder_cold|ladder|medium,b2_h8_s256_d64,b1_h8_s512_d64,long|--cache=cold
hopper_small|hopper_small|b2_h8_s256_d64,b1_h8_s512_d64,medium,long|
hopper|hopper|$kSquare,fa3_d64_s8192_full,fa3_d64_s8192_causal,fa3_d128_s8192_full,fa3_d128_s8192_causal|--peers=flash,cudnn --processes=8 --blocks=4
hopper_leave_one_out|hopper_leave_one_out|$kLargest|--blocks=6
hopper_d64|hopper_d64|$(lengths 64)|--peers=flash,cudnn --processes=8 --blocks=4
hopper_d128|hopper_d128|$(lengths 128)|--peers=flash,cudnn --processes=8 --blocks=4
hopper_d256|hopper_d256|$(lengths 256)|--peers=flash,cudnn --processes=8 --blocks=4
alone_d64|fastest_d64|$(lengths 64),long|$kAlone
alone_d128|fastest_d128|$(lengths 128),gqa_prefill|$kAlone
alone_d128_bf16|fastest_d128_bf16|$(lengths 128 "" _bf16)|$kAlone
alone_d256|fastest_d256|$(lengths 256)|$kAlone
alone_without_d64|without_d64|$(lengths 64 "512 2048 8192")|--alone --peers=off
alone_without_d128|without_d128|$(lengths 128 "512 2048 8192")|--alone --peers=off
alone_without_d256|without_d256|$(lengths 256 "512 2048 8192")|--alone --peers=off
alone_fp8_d64|fastest_fp8_d64|$(lengths 64 "512 2048 8192")|--alone --peers=cudnn_fp8
alone_fp8_d128|fastest_fp8_d128|$(lengths 128 "512 2048 8192")|--alone --peers=cudnn_fp8
alone_fp8_d256|fastest_fp8_d256|$(lengths 256 "512 2048 8192")|--alone --peers=cudnn_fp8
alone_forms_fp8_d64|forms_fp8_d64|$(lengths 64 "512 2048 8192")|--alone --peers=cudnn_fp8
alone_forms_fp8_d128|forms_fp8_d128|$(lengths 128 "512 2048 8192")|--alone --peers=cudnn_fp8
alone_forms_fp8_d256|forms_fp8_d256|$(lengths 256 "512 2048 8192")|--alone --peers=cudnn_fp8
alone_output_fp8_d64|output_fp8_d64|$(lengths 64 "512 2048 8192")|--alone --peers=cudnn_fp8
alone_output_fp8_d128|output_fp8_d128|$(lengths 128 "512 2048 8192")|--alone --peers=cudnn_fp8
alone_output_fp8_d256|output_fp8_d256|$(lengths 256 "512 2048 8192")|--alone --peers=cudnn_fp8
alone_hopper_d128|hopper_d128|$(lengths 128 "2048 8192")|--alone --peers=off
hopper_plus|hopper_plus|$kSquare,fa3_d64_s512_full,$kLargest|--peers=off --processes=8 --blocks=4
hopper_tiles|hopper_tiles|fa3_d64_s512_full,fa3_d128_s512_full,fa3_d64_s8192_full,fa3_d128_s8192_full|--peers=off --processes=8 --blocks=4
hopper_bf16|hopper_bf16|$(lengths 128 "" _bf16)|--peers=flash,cudnn --processes=8 --blocks=4
hopper_fp8|hopper_fp8|$(lengths 128 "2048 4096 8192 16384")|--peers=flash,cudnn --processes=8 --blocks=4
hopper_decode|hopper_decode|decode_b1,decode_b16,decode_mqa_b1,b1_h8_s512_d64|--processes=8 --blocks=4
hopper_gqa|hopper_gqa|gqa_prefill,mqa_prefill|--processes=8 --blocks=4
mma|mma|$kSquare,$kFlash2|--peers=flash,cudnn --blocks=8
mma_d128|mma_d128|$kFlash2D128|--peers=flash,cudnn --blocks=8
mma_leave_one_out|mma_leave_one_out|$kSquare,$kFlash2|--peers=off --blocks=8
mma_groups|mma_groups|b2_h8_s256_d64,b1_h8_s512_d64,medium,long,$kFlash2|--peers=flash,cudnn --blocks=8
mma_tiles|mma_tiles|$kSquare,$kFlash2|--peers=off --blocks=8
mma_exp|mma_exp|$kSquare,$kFlash2|--peers=off --blocks=8
mma_layout|mma_layout|$kSquare,$kFlash2|--peers=off --blocks=8
mma_stages|mma_stages|$kSquare,$kFlash2|--peers=off --blocks=8
mma_options|mma_options|$kSquare,$kFlash2|--peers=off --blocks=8
mma_decode|mma_decode|decode_b1,decode_b16,decode_mqa_b1|
mma_decode_dtype|mma_decode_dtype|decode_b1,decode_b16|--peers=off
mma_dtype|mma_dtype|$kSquare,$kFlash2|--peers=off --blocks=8
mma_bf16|mma_bf16|b1_h8_s512_d64,b1_h8_s512_d64_bf16,fa3_d128_s2048_full,fa3_d128_s2048_full_bf16|
mma_gqa|mma_gqa|gqa_prefill,mqa_prefill|
mma_launch|mma_launch|b2_h8_s256_d64,b1_h8_s512_d64,medium,long,$kFlash2|--peers=off --blocks=8
fusion|fusion|fusion_a,fusion_b|
stage2_plus|stage2_plus|$kSquare,$kFlash2|--peers=off --blocks=4
wmma_d128|wmma_d128|fa3_d128_s512_full,$kFlash2D128|--peers=off --blocks=6
one_on|one_on|$kSquare,$kFlash2Slow|--peers=off --blocks=6
leave_one_out|leave_one_out|$kSquare,$kFlash2Slow|--peers=off --blocks=6
factorial|factorial|small,b1_h8_s512_d64,long|--peers=off
folklore_reduction|ladder|all|--study=reduction --blocks=12
folklore_transpose|one_on|all|--study=transpose --blocks=12
folklore_sgemm|ladder|all|--study=sgemm --blocks=12
folklore_softmax|one_on|all|--study=softmax --blocks=12
folklore_histogram|one_on|all|--study=histogram --blocks=12
folklore_stencil|one_on|all|--study=stencil --blocks=12
folklore_elementwise|one_on|all|--study=elementwise --blocks=12
folklore_nbody|one_on|all|--study=nbody --blocks=12
folklore_stream|one_on|all|--study=stream --blocks=12
"

fail() {
  echo "record.sh: $2" >&2
  exit "$1"
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out="" only="" gpus=1 prefix=$root/build python=python3 dry_run=0 given=""
flags=()
while (($# > 0)); do
  case $1 in
    --help | -h) usage && exit 0 ;;
    --list) awk -F'|' 'NF { printf "%-22s %s on %s %s\n", $1, $2, $3, $4 }' <<<"$kSets" && exit 0 ;;
    --dry_run) dry_run=1 ;;
    --only | --gpus | --prefix | --python)
      [[ -n ${2-} ]] || fail 2 "$1 needs a value"
      [[ $given != *"$1 "* ]] || fail 2 "$1 is given twice"
      given+="$1 "
      declare "${1#--}=$2"
      shift
      ;;
    --only=* | --gpus=* | --prefix=* | --python=*)
      set -- "${1%%=*}" "${1#*=}" "${@:2}"
      continue
      ;;
    --) shift && flags=("$@") && break ;;
    -*) fail 2 "unknown argument '$1'; see --help" ;;
    *)
      [[ -z $out ]] || fail 2 "one folder, not '$out' and '$1'; see --help"
      out=$1
      ;;
  esac
  shift
done
[[ -n $out ]] || { usage >&2; exit 2; }
[[ $gpus =~ ^[0-9][0-9]?$ ]] || fail 2 "--gpus is a number up to 99, not '$gpus'"
warpledger=$prefix/bin/warpledger
# A record that lacks this peer is whole all the same, and minutes long.
[[ -z ${WARPLEDGER_FA3-} || -s $WARPLEDGER_FA3 ]] ||
  fail 2 "WARPLEDGER_FA3 names '$WARPLEDGER_FA3', which is not there or empty"
[[ -x $warpledger ]] || fail 3 "no program $warpledger; build it (./test), or name a --prefix"

set_of() { # the line of a set
  awk -F'|' -v name="$1" 'NF && $1 == name { print; found = 1; exit } END { exit !found }' \
    <<<"$kSets" || fail 2 "no set '$1'; see --list"
}
[[ $only != folklore ]] || only=$(awk -F'|' '/^folklore_/ { print $1 }' <<<"$kSets" | paste -sd,)
if [[ -z $only ]]; then
  sets=$(awk -F'|' 'NF { print $1 }' <<<"$kSets")
else
  IFS=, read -ra chosen <<<"$only,"
  for set in "${chosen[@]}"; do set_of "$set" >/dev/null; done
  sets=${chosen[*]}
fi

flags_of() { # SET: its flags into `call`; a further flag takes the place of the set's own
  local name=$1 design shapes own flag own_flags head_dim seed count kinds
  IFS='|' read -r _ design shapes own <<<"$(set_of "$name")"
  if [[ $shapes == random:* ]]; then
    IFS=: read -r _ head_dim seed count kinds <<<"$shapes"
    shapes=$("$python" "$root/reports/random_problems.py" --head_dim "$head_dim" --count "$count" \
      --seed "$seed" ${kinds:+--kinds "$kinds"})
  fi
  read -ra own_flags <<<"$own"
  own_flags=(${own_flags[@]+"${own_flags[@]/#--study=/--study=$root/ablations/studies/}"})
  call=()
  for flag in --design="$design" --shapes="$shapes" --python="$python" \
    ${own_flags[@]+"${own_flags[@]}"}; do
    [[ " ${flags[*]-} " == *" ${flag%%=*}"[=\ ]* ]] || call+=("$flag")
  done
  call+=(${flags[@]+"${flags[@]}"})
}

failed=() planned=()
for set in $sets; do
  flags_of "$set"
  if ((dry_run)); then
    echo "== $set"
    "$warpledger" run "${call[@]}" --dry_run || failed+=("$set")
  else
    "$warpledger" fleet --out="$out" --name="$set" "${call[@]}" >/dev/null && planned+=("$set") ||
      failed+=("$set")
  fi
done
if ((!dry_run && gpus == 0)); then
  echo "On a cluster: sbatch '$out/fleet.sbatch'"
elif ((${#planned[@]} > 0)); then
  "$warpledger" fleet --work="$out" --only="$(IFS=, && echo "${planned[*]}")" --gpus="$gpus" ||
    failed+=("those named above")
fi
((${#failed[@]} == 0)) || fail 1 "failed: ${failed[*]}"
