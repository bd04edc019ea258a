#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiler launcher for kernel instances: compiles as asked, and keeps what the
# linked object was made from.
#
#   instance_launcher.sh [--waivers FILE] nvcc <args...> -c x.cu -o dir/x.cu.o
#   instance_launcher.sh [--waivers FILE] nvcc <args...> -fatbin x.cu -o dir/x.fatbin
#
# After success, beside the object, dir/x.cu.o.keep/ holds ptxas.log (the whole
# diagnostic output, ptxas -v included) and the *.ptx and *.cubin of each
# architecture; nothing else. cmake/collect_codegen.py reads them.
#
# Errors: the compiler's own exit status is passed on. Status 3 when the compile
# succeeded but ptxas serialised wgmma (C7511, C7513, C7514, C7515, C7517, C7519), spilled
# registers, or reported no kernel at all; the object is then not written. Spills are let
# through for a kernel that FILE names, one `<name> <reason>` per line, where
# <name> is the source's file name without .cu, or the kernel's symbol. FILE is
# kernels/sdpa/spill_waivers.txt by default and need not exist.
#
# The object and its keep folder are built under `.part` names and renamed at
# the end, the object last: a kill leaves no half-written object, and what it
# leaves the next run replaces.

set -u -o pipefail

readonly kPolicyFailure=3
waivers="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/kernels/sdpa/spill_waivers.txt"
if [[ "${1-}" == --waivers ]]; then
  waivers="${2-}"
  shift 2
fi
if (($# == 0)); then
  echo "instance_launcher.sh: no compiler given; call it as: instance_launcher.sh nvcc ..." >&2
  exit 2
fi

object='' source='' depfile='' compiles=0 has_target=0
args=()
previous=''
for argument in "$@"; do
  case "$previous" in
    -o) object="$argument" ;;
    -MF) depfile="$argument" ;;
  esac
  case "$argument" in
    -c | --compile | -fatbin) compiles=1 ;;
    -MT) has_target=1 ;;
    *.cu) [[ "$previous" == -o || "$previous" == -M[TF] ]] || source="$argument" ;;
  esac
  if [[ "$previous" == -o ]]; then
    args+=("$argument.part")
  else
    args+=("$argument")
  fi
  previous="$argument"
done

# Links, version queries and the like leave nothing to keep.
if ((!compiles)) || [[ -z "$object" || -z "$source" ]]; then
  exec "$@"
fi

name="$(basename "$source" .cu)"
keep="$object.keep"
part="$keep.part"

Discard() { [[ ! -e "$part" && ! -e "$object.part" ]] || rm -rf -- "$part" "$object.part"; }
trap 'Discard; exit 130' INT
trap 'Discard; exit 143' TERM
trap 'Discard; exit 129' HUP

Discard
mkdir -p -- "$part" || exit 1
# Else the dependency file would speak of the .part object.
if [[ -n "$depfile" ]] && ((!has_target)); then
  args+=(-MT "$object")
fi

"${args[@]}" -Xptxas=-v --keep --keep-dir "$part" 2>"$part/ptxas.log"
compiled=$?

# One process for all that is read from the log: a build runs this for each of its kernels.
# Prints everything but the -v report, so that real warnings stay visible; of what compiled it
# says why it is refused.
awk -v compiled="$compiled" -v source="$source" -v name="$name" -v waivers="$waivers" \
  -v refused="$kPolicyFailure" '
  function Tell(text) { print text > "/dev/stderr" }
  function Refuse(text) {
    Tell("instance_launcher.sh: " source ": " text)
    code = refused
    exit code
  }
  function Waived(line, words) {
    while ((getline line < waivers) > 0) {
      if (line !~ /^[ \t]*#/ && split(line, words) >= 2 && (words[1] == name || words[1] in kernels)) {
        return 1
      }
    }
    return 0
  }
  /^ptxas info +: +Compiling entry function / {
    split($0, quoted, "\047")
    kernels[quoted[2]]
    kernel = quoted[2] " for " quoted[4]
    ++entries
    next
  }
  /C75(11|13|14|15|17|19)([^0-9]|$)/ { serialised = serialised $0 "\n" }
  /bytes spill (stores|loads)/ && !/ 0 bytes spill stores, 0 bytes spill loads/ {
    spills = spills "  " kernel ":" $0 "\n"
  }
  /^ptxas info +: +([0-9]+ bytes gmem|Function properties for |Used [0-9]+ registers|Compile time = )/ ||
  /^ +[0-9]+ bytes stack frame, / { next }
  { Tell($0) }
  END {
    if (code) exit code
    if (compiled != 0) exit compiled
    if (!entries) {
      Refuse("ptxas reported no kernel. The source must define one, for real architectures (sm_NN).")
    }
    if (serialised) {
      Refuse("ptxas serialised wgmma, so nothing overlaps:\n" serialised \
             "Keep its accumulators out of other instructions until wgmma.wait_group.")
    }
    if (spills && !Waived()) {
      Refuse("registers spilled to local memory:\n" spills \
             "Lower the register need (smaller tile, fewer live fragments), or write \047" name \
             " <reason>\047\ninto " waivers ".")
    }
  }' "$part/ptxas.log"
status=$?
if ((status != 0)); then
  Discard
  exit "$status"
fi

shopt -s nullglob dotglob
others=()
for file in "$part"/*; do
  [[ "$file" == *.ptx || "$file" == *.cubin || "$file" == */ptxas.log ]] || others+=("$file")
done
rm -rf -- "${others[@]}" "$keep" && mv -- "$part" "$keep" && mv -- "$object.part" "$object"
