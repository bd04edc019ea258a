# SPDX-License-Identifier: Apache-2.0
# Options, the build type and the flags that every C++ file of the project gets.

option(WARPLEDGER_TESTS "Build the tests" ON)
option(WARPLEDGER_QUICK "Leave out what `./test --quick` leaves out: gpu, slow and long tests" OFF)
option(WARPLEDGER_WERROR "Treat warnings of GCC up to 12, Clang and nvcc as errors" ON)
option(WARPLEDGER_SANITIZE "AddressSanitizer and UndefinedBehaviorSanitizer on host code" OFF)
option(WARPLEDGER_STATIC "Prefer static libraries, so that the install tree needs only the driver"
       ON)

option(WARPLEDGER_BATCH_COMPILE
       "Parse library headers once, and compile several host sources as one" ON)

option(WARPLEDGER_MICRO "Build the microbenchmarks" ON)
set(WARPLEDGER_DESIGNS "" CACHE STRING
    "Compile the kernels of these designs alone (ladder;mma), a_step_per_family or library; empty: all")
set(WARPLEDGER_EXTRA_DESIGNS "" CACHE STRING
    "Designs of one's own whose kernels are compiled too: factorial:a,b@c;sweep:d")

# A time taken from an unoptimised binary is worthless, so Release is what you
# get by default; the programs refuse to measure in any other build type.
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release or RelWithDebInfo" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

# Includes are written from the repository's root: "ablations/record/store.h". What CMake writes begins with
# the project's name: "warpledger_build_info.h".
include_directories(${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)

add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wall>
                    $<$<COMPILE_LANGUAGE:CXX>:-Wextra>
                    $<$<COMPILE_LANGUAGE:CXX>:-Wpedantic>
                    # GCC sees uninitialised values where there are none: 14 in std::optional, 12 under
                    # the sanitizers in <regex>.
                    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
# Verdicts are the same bytes everywhere: no compiler may fuse a product and a sum where the target
# has an instruction for it.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
# A newer compiler warns of more: that stops no one's build.
if(WARPLEDGER_WERROR AND NOT (CMAKE_CXX_COMPILER_ID STREQUAL "GNU"
                              AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13))
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()

if(WARPLEDGER_SANITIZE)
  add_compile_options(
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=address,undefined>
    $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=all>
    $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>)
  add_link_options(-fsanitize=address,undefined)
elseif(WARPLEDGER_STATIC AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # The sanitizers' runtimes must see the shared libstdc++, hence not there.
  add_link_options(-static-libstdc++ -static-libgcc)
endif()
