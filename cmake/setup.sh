# SPDX-License-Identifier: Apache-2.0
# Sourced by ./repro and ./test: what they both need before their own work.
#
#   setup_all ROOT PRESET   installs what is missing, makes the virtual
#                           environment, configures and builds
#
# A second call finds everything in place and does no more than ninja's check.
# Packages come from apt (as root or with passwordless sudo), Python packages
# from PyPI into build/venv; nothing goes into the system's Python. Where
# something is missing and can't be installed, it says what and how, and exits
# with 3. WARPLEDGER_SKIP_SETUP=1 installs nothing at all.

# --- Telling the user where we are -------------------------------------------

WARPLEDGER_START_SECONDS=${SECONDS:-0}

# step NAME TEXT: a heading with the time since the start and, where the same
# step was timed before, how long it took then.
step() {
  local name=$1 text=$2 estimate="" seconds
  if [[ -r ${TIMINGS_DIR:-/nonexistent}/$name ]]; then
    seconds=$(<"$TIMINGS_DIR/$name")
    if [[ $seconds =~ ^[0-9]+$ ]] && ((seconds >= 10)); then
      estimate=" (about ${seconds} s, as last time)"
    fi
  fi
  STEP_NAME=$name
  STEP_START=$SECONDS
  local elapsed=$((SECONDS - WARPLEDGER_START_SECONDS))
  if [[ -t 1 ]]; then
    printf '\033[1m[%3d s] %s\033[0m%s\n' "$elapsed" "$text" "$estimate"
  else
    printf '[%3d s] %s%s\n' "$elapsed" "$text" "$estimate"
  fi
}

# step_done: keeps the step's duration for the next run's estimate.
step_done() {
  [[ -d ${TIMINGS_DIR:-/nonexistent} ]] || return 0
  # A step that found its work already done says nothing about the next time.
  if ((SECONDS - STEP_START >= 2)); then
    echo $((SECONDS - STEP_START)) >"$TIMINGS_DIR/$STEP_NAME"
  fi
}

# --- What is missing ---------------------------------------------------------

# have_package NAME: is the Debian package installed?
have_package() {
  [[ $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

# system_python: the interpreter that the virtual environment is made from. The
# distribution's own comes first: a version manager's may lack parts.
system_python() {
  local candidate
  for candidate in /usr/bin/python3 "$(command -v python3 || true)"; do
    if [[ -n $candidate && -x $candidate ]] &&
      "$candidate" -c 'import sys, venv, ensurepip; assert sys.version_info >= (3, 10)' \
        >/dev/null 2>&1; then
      echo "$candidate"
      return 0
    fi
  done
  return 1
}

# missing_packages PRESET: the Debian packages that a build of the preset still needs, one a
# line. A program counts wherever it comes from; a library counts as a package.
missing_packages() {
  local pair
  for pair in g++:g++ cmake:cmake ninja:ninja-build git:git; do
    command -v "${pair%%:*}" >/dev/null 2>&1 || echo "${pair#*:}"
  done
  if ! system_python >/dev/null; then
    printf '%s\n' python3 python3-venv
  fi
  local library libraries=(libabsl-dev nlohmann-json3-dev libzstd-dev libmd-dev
    libtomlplusplus-dev)
  case ${1:-release} in
    ladder | replay) ;;
    quick) libraries+=(libgtest-dev libgmock-dev) ;;
    *) libraries+=(libgtest-dev libgmock-dev libbenchmark-dev libbenchmark-tools) ;;
  esac
  for library in "${libraries[@]}"; do
    have_package "$library" || echo "$library"
  done
}

# install_wanted PROGRAM...: Debian packages called as their programs, without which a test is
# skipped.
install_wanted() {
  local program
  for program; do
    [[ ${WARPLEDGER_SKIP_SETUP:-0} == 1 ]] || command -v "$program" >/dev/null 2>&1 ||
      install_packages "$program" || echo "Going on without $program: its tests are skipped." >&2
  done
}

# version_at_least HAVE WANT, both like 3.25.1
version_at_least() {
  [[ $(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1) == "$2" ]]
}

# --- Installing --------------------------------------------------------------

# install_packages NAME...: through apt, or says how and returns 3.
install_packages() {
  (($# > 0)) || return 0
  local sudo=()
  if [[ ${EUID_FOR_TEST:-$EUID} -ne 0 ]]; then
    if command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
      sudo=(sudo -n)
    else
      {
        echo "These packages are missing: $*"
        echo "Installing them needs root, and sudo here asks for a password or is absent. Run:"
        echo "  sudo apt-get update && sudo apt-get install --no-install-recommends $*"
        echo "and then this script again."
      } >&2
      return 3
    fi
  fi
  echo "Installing: $*"
  "${sudo[@]}" apt-get -qq update || true # a stale list may still do; install says
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq install -y --no-install-recommends "$@" >/dev/null
}

# install_system_packages PRESET
install_system_packages() {
  if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
    local program absent=()
    for program in g++ cmake ninja git python3; do
      command -v "$program" >/dev/null 2>&1 || absent+=("$program")
    done
    if ((${#absent[@]} > 0)); then
      echo "This system has no apt, and these programs are missing: ${absent[*]}." \
        "Install them, and the development files of Abseil, GoogleTest, Google Benchmark," \
        "nlohmann-json, libzstd, libmd and toml++, with its own package manager." >&2
      return 3
    fi
    return 0 # CMake names a library that it can't find.
  fi
  local missing
  mapfile -t missing < <(missing_packages "${1:-release}")
  install_packages "${missing[@]}"
}

# install_venv ROOT: build/venv with requirements.txt, once per content of it.
install_venv() {
  local root=$1 venv=$1/build/venv wanted python
  python=$(system_python) || {
    echo "There is no Python of at least 3.10 with the modules venv and ensurepip." \
      "Install python3 and python3-venv." >&2
    return 3
  }
  wanted=$(cat "$root/requirements.txt" "$root/cmake/requirements_codegen.txt" | sha256sum)
  if [[ ! -x $venv/bin/python || $(cat "$venv/requirements.sha256" 2>/dev/null) != "$wanted" ]]; then
    # The caller's `||` switches errexit off in here, hence each `|| return`.
    rm -rf "$venv"
    "$python" -m venv "$venv" || return 1
    "$venv/bin/pip" install --quiet --disable-pip-version-check \
      -r "$root/requirements.txt" || {
      echo "pip could not install requirements.txt into build/venv; its message is above." \
        "Behind a proxy or a private certificate, set PIP_PROXY or PIP_CERT and run this again." >&2
      return 1
    }
    # Only the disassembly checks want this one, and they skip without it.
    "$venv/bin/pip" install --quiet --disable-pip-version-check \
      -r "$root/cmake/requirements_codegen.txt" ||
      echo "Going on without nvdisasm: SASS is not checked, PTX and the code hashes are." >&2
    printf '%s\n' "$wanted" >"$venv/requirements.sha256"
  fi
  # Distributions older than Debian 12 have an older CMake than we need.
  if ! version_at_least "$(cmake --version | awk 'NR == 1 { print $3 }')" 3.25; then
    [[ -x $venv/bin/cmake ]] ||
      "$venv/bin/pip" install --quiet --disable-pip-version-check 'cmake==3.31.6' || return 1
    PATH=$venv/bin:$PATH
    hash -r
  fi
}

# --- The whole ---------------------------------------------------------------

# find_nvcc: where CMake finds nvcc (cmake/cuda.cmake); fails if nowhere.
find_nvcc() {
  local candidate candidates=(nvcc "${CUDA_HOME:-}/bin/nvcc" "${CUDA_PATH:-}/bin/nvcc"
    /usr/local/cuda/bin/nvcc)
  [[ -z ${CUDACXX:-} ]] || candidates=("$CUDACXX")
  for candidate in "${candidates[@]}"; do
    if command -v "$candidate"; then return 0; fi
  done
  return 1
}

# find_ninja ROOT: the virtual environment's, which tells the time left, or the system's.
find_ninja() {
  if [[ -x $1/build/venv/bin/ninja ]]; then echo "$1/build/venv/bin/ninja"; else command -v ninja; fi
}

# has_finished_build ROOT PRESET: is the preset's program no older than any source?
has_finished_build() {
  local program
  program=$(preset_dir "$1" "$2")/bin/warpledger
  [[ -x $program && -z $(find "$1"/{kernels,ablations,micro,reports,cmake,CMakeLists.txt} \
    -newer "$program" -type f \( -name '*.cc' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' \
    -o -name '*.def' -o -name '*.in' -o -name '*.cmake' -o -name CMakeLists.txt \) \
    -print -quit 2>/dev/null) ]]
}

# preset_dir ROOT PRESET: the preset's build folder.
preset_dir() {
  if [[ $2 == release ]]; then echo "$1/build"; else echo "$1/build-$2"; fi
}

setup_all() {
  local root=$1 preset=$2 build
  build=$(preset_dir "$root" "$preset")
  TIMINGS_DIR=$build/.timings
  mkdir -p "$TIMINGS_DIR"
  local flags=() ninja
  if [[ ${WARPLEDGER_SKIP_SETUP:-0} != 1 ]]; then
    step packages "Looking for what the build needs"
    install_system_packages "$preset" || return $?
    step venv "Python packages in build/venv"
    install_venv "$root" || return $?
    flags=("-DWARPLEDGER_PYTHON=$root/build/venv/bin/python")
  fi
  ninja=$(find_ninja "$root")
  flags+=("-DCMAKE_MAKE_PROGRAM=$ninja")
  step configure "Configuring ($preset)"
  (cd "$root" && cmake --preset "$preset" "${flags[@]}" --log-level=STATUS) \
    >"$build/configure.log" 2>&1 || {
    cat "$build/configure.log" >&2
    return 1
  }
  sed -n '/^-- Warpledger /,/^-- Configuring done/{/^-- Configuring done/d;s/^-- //p}' \
    "$build/configure.log"
  step_done
  step build "Building with $(nproc) jobs"
  local status='[%f/%t, %e s] '
  # Older ones take %W, the time left, for an error.
  if version_at_least "$("$ninja" --version)" 1.12; then status='[%f/%t, %e s, %W left] '; fi
  (cd "$root" && NINJA_STATUS=$status cmake --build --preset "$preset" -j "$(nproc)") || return $?
  step_done
}
