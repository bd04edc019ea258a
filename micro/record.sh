#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs all microbenchmarks on this machine's GPU and keeps what they say.
set -euo pipefail

usage() {
  cat <<'TEXT'
micro/record.sh OUTDIR [--filter REGEX] [--processes N] [--repetitions N]
                [--python PYTHON] [--prefix PREFIX] [--noplots]

Runs the microbenchmarks in N processes (default 3), with N repetitions of each
case in each process (default 3), prints progress, and writes into OUTDIR, which
it makes:
  cases.json             the program's list of cases
  micro_raw.jsonl        every sample
  micro_process<N>.json  Google Benchmark's own output, as its tools read it
  micro.json             values, intervals and limits
  micro.md, micro/       a page for each question, with figures where PYTHON has
                         matplotlib
All cases take about four minutes on an H200. The same call on the same folder
continues after a stop: finished processes are kept.

  --filter REGEX    only cases whose names match; -REGEX: only those that don't
  --prefix PREFIX   an install tree or a build folder; by default the tree that
                    holds this script, else ./build
  --python PYTHON   3.10 or newer, by default $WARPLEDGER_PYTHON or python3
  --noplots         no figures

Exit codes: 0 all cases ran; 1 a case or a step failed (what ran is kept);
2 wrong use, or OUTDIR holds another run; 3 no program, or no GPU.
TEXT
}

fail() {
  echo "record.sh: $2" >&2
  exit "$1"
}

readonly kSecondsPerProcess=150 kSecondsInAll=300
made=0 processes=3 repetitions=3 filter=. out="" prefix="" plots=1 given=""
python=${WARPLEDGER_PYTHON:-python3}
while (($# > 0)); do
  case $1 in
    --help | -h) usage && exit 0 ;;
    --noplots) plots=0 ;;
    --filter | --processes | --repetitions | --prefix | --python)
      [[ -n ${2-} ]] || fail 2 "$1 needs a value"
      [[ $given != *"$1 "* ]] || fail 2 "$1 is given twice"
      given+="$1 "
      declare "${1#--}=$2"
      shift
      ;;
    --*=*) # the same with a '='
      set -- "${1%%=*}" "${1#*=}" "${@:2}"
      continue
      ;;
    -*) fail 2 "unknown argument '$1'; see --help" ;;
    *)
      [[ -z $out ]] || fail 2 "one folder, not '$out' and '$1'; see --help"
      out=$1
      ;;
  esac
  shift
done
[[ -n $out ]] || fail 2 "OUTDIR is missing; see --help"
for count in "$processes" "$repetitions"; do
  [[ $count =~ ^[1-9][0-9]?$ ]] || fail 2 "'$count' is no number from 1 to 99"
done
# A '-' first would be an option to no one but Google Benchmark, which wants it so.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [[ -z $prefix ]]; then
  prefix=$(cd "$here/../../.." && pwd) # PREFIX/share/warpledger/micro
  [[ -x $prefix/bin/warpledger_micro ]] || prefix=$here/../build
fi
program=$prefix/bin/warpledger_micro
[[ -x $program ]] || fail 3 "no $program; build it or name --prefix"

[[ -d $out ]] || made=1
mkdir -p "$out"
exec {lock}<"$out"
flock -n "$lock" || fail 2 "another call writes into $out"
# What a folder was started with, from the first process on that ran to its end; another call on
# it is another run, and so is one of another build of the program, whose processes say nothing of
# the first one's.
settings="filter=$filter processes=$processes repetitions=$repetitions"
settings+=" program=$(sha256sum <"$program" | cut -d' ' -f1)"
cases=$("$program" --warpledger_list)
if [[ -e $out/settings.txt ]]; then
  started=$(<"$out/settings.txt")
  [[ ${started% program=*} == "${settings% program=*}" ]] ||
    fail 2 "$out was started with $started, not with $settings; name a new folder"
  [[ $started == "$settings" ]] ||
    fail 2 "$out was started by another build of $program; name a new folder"
  [[ ! -e $out/cases.json || $(<"$out/cases.json") == "$cases" ]] ||
    fail 2 "$out was started by a program with other cases; name a new folder"
elif [[ -e $out/micro.json || -e $out/cases.json ]]; then
  fail 2 "$out holds a run already; name a new folder"
fi

failed=0
for ((process = 0; process < processes; ++process)); do
  name=$out/micro_process$process
  if [[ -e $name.json ]]; then
    echo "== process $((process + 1)) of $processes: done before" >&2
    continue
  fi
  echo "== process $((process + 1)) of $processes" >&2
  rm -f "$name.raw.part" "$name.json.part"
  status=0
  timeout "$kSecondsPerProcess" "$program" --warpledger_process="$process" \
    --warpledger_raw="$name.raw.part" --warpledger_progress \
    --benchmark_repetitions="$repetitions" --benchmark_filter="$filter" \
    --benchmark_out="$name.json.part" --benchmark_out_format=json >"$name.log" || status=$?
  if ((status == 3)); then
    rm -f "$name.raw.part" "$name.json.part" "$name.log"
    ((!made)) || rmdir --ignore-fail-on-non-empty "$out"
    exit 3
  fi
  ((status != 2)) || fail 2 "no case matches '$filter'; $program --warpledger_list has all"
  if ((status != 0 && status != 1)); then
    ((status == 124)) &&
      echo "record.sh: process $process took more than $kSecondsPerProcess s" >&2
    fail 1 "process $process was stopped ($status); the same call goes on"
  fi
  ((status == 0)) || failed=1
  [[ -s $name.raw.part ]] || fail 1 "process $process wrote no sample; $name.log may say why"
  # In this order, and whole: a kill in between must not take the folder for another run's.
  for file in settings.txt cases.json; do
    [[ $file == cases.json ]] && text=$cases || text=$settings
    echo "$text" >"$out/$file.part"
    mv "$out/$file.part" "$out/$file"
  done
  # The JSON last: it stands for the whole process.
  mv "$name.raw.part" "$name.raw.jsonl"
  mv "$name.json.part" "$name.json"
done

cat "$out"/micro_process*.raw.jsonl >"$out/micro_raw.jsonl"
"$python" "$here/record.py" collect --run "$out"
((plots)) && "$python" -c 'import matplotlib' 2>/dev/null || plots=0
report=("$python" "$here/record.py" report --micro "$out/micro.json" --out "$out")
((plots)) || report+=(--noplots)
"${report[@]}"
((plots)) || echo "record.sh: no figures were drawn" >&2
((SECONDS <= kSecondsInAll)) || echo "record.sh: this took $SECONDS s, not $kSecondsInAll" >&2
echo "Index: $out/micro.md"
exit "$failed"
