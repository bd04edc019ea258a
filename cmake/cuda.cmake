# SPDX-License-Identifier: Apache-2.0
# Finds nvcc and turns CUDA on. Sets WARPLEDGER_HAS_CUDA.
#
# Without nvcc the host part is built alone: statistics, records, reports and
# their tests. WARPLEDGER_CUDA=ON makes a missing nvcc an error, OFF ignores it.

set(WARPLEDGER_CUDA AUTO CACHE STRING "Build the CUDA kernels: AUTO (where nvcc is found), ON, OFF")
set_property(CACHE WARPLEDGER_CUDA PROPERTY STRINGS AUTO ON OFF)

set(WARPLEDGER_HAS_CUDA OFF)
if(NOT WARPLEDGER_CUDA STREQUAL "OFF")
  if(NOT CMAKE_CUDA_COMPILER)
    # CMake itself looks at $CUDACXX and PATH only, and the toolkit's default
    # place is on neither. Who sets $CUDACXX wants that compiler and no other.
    if(NOT "$ENV{CUDACXX}" STREQUAL "")
      find_program(WARPLEDGER_NVCC NAMES $ENV{CUDACXX} DOC "The CUDA compiler")
    else()
      find_program(WARPLEDGER_NVCC NAMES nvcc
                   PATHS $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin /usr/local/cuda/bin
                   DOC "The CUDA compiler")
    endif()
    if(WARPLEDGER_NVCC)
      set(CMAKE_CUDA_COMPILER ${WARPLEDGER_NVCC})
    endif()
  endif()
  if(CMAKE_CUDA_COMPILER)
    set(WARPLEDGER_HAS_CUDA ON)
  elseif(WARPLEDGER_CUDA STREQUAL "ON")
    message(FATAL_ERROR "WARPLEDGER_CUDA=ON, but there is no nvcc on PATH, in $CUDACXX or in "
                        "/usr/local/cuda/bin. Install the CUDA toolkit, or set "
                        "-DCMAKE_CUDA_COMPILER=<path of nvcc>.")
  endif()
endif()

if(WARPLEDGER_HAS_CUDA)
  # Each architecture is another compile of each kernel, most of a fresh build: sm_90, which the
  # records are made on, and what measures and tests on this machine. The first configuration
  # decides, so that a GPU that is put in later needs a new build folder or the option.
  # `native` means this machine's GPUs alone.
  if(NOT DEFINED WARPLEDGER_CUDA_ARCHITECTURES OR WARPLEDGER_CUDA_ARCHITECTURES STREQUAL "native")
    include(${CMAKE_CURRENT_LIST_DIR}/gpu_architectures.cmake)
    warpledger_gpu_architectures(architectures ${CMAKE_CUDA_COMPILER})
    if(NOT DEFINED WARPLEDGER_CUDA_ARCHITECTURES)
      list(APPEND architectures 90-real)
    elseif(NOT architectures)
      message(FATAL_ERROR "WARPLEDGER_CUDA_ARCHITECTURES=native, but nvidia-smi lists no GPU that "
                          "${CMAKE_CUDA_COMPILER} compiles for")
    endif()
    unset(WARPLEDGER_CUDA_ARCHITECTURES CACHE)
    list(REMOVE_DUPLICATES architectures)
    list(SORT architectures COMPARE NATURAL)
  endif()
  set(WARPLEDGER_CUDA_ARCHITECTURES "${architectures}"
      CACHE STRING "GPU architectures that each kernel instance is compiled for")
  # The ladder began on an sm_89, and code for sm_80 runs on every GPU from there to sm_89. The
  # cumulative ladders alone keep both, with their spills checked; the preset `all` compiles
  # everything for them.
  set(WARPLEDGER_LADDER_ARCHITECTURES "80-real;89-real"
      CACHE STRING "GPU architectures that, beside those, the cumulative ladders are compiled for")
  # Of the ladders, and so of what times and checks them.
  set(WARPLEDGER_ALL_ARCHITECTURES ${WARPLEDGER_CUDA_ARCHITECTURES}
                                   ${WARPLEDGER_LADDER_ARCHITECTURES})
  list(REMOVE_DUPLICATES WARPLEDGER_ALL_ARCHITECTURES)

  # Before enable_language: CMake 3.25 otherwise tries the compiler with an
  # architecture that CUDA 13 refuses.
  set(CMAKE_CUDA_ARCHITECTURES ${WARPLEDGER_CUDA_ARCHITECTURES})
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  enable_language(CUDA)
  # CMake 3.25 tells projects that require 3.25 that nvToolsExt is deprecated, and fails with CUDA 13,
  # which no longer has it.
  set(required_version ${CMAKE_MINIMUM_REQUIRED_VERSION})
  set(CMAKE_MINIMUM_REQUIRED_VERSION 3.24)
  find_package(CUDAToolkit REQUIRED)
  set(CMAKE_MINIMUM_REQUIRED_VERSION ${required_version})
  # CMake 3.25 has no C++20 flag for nvcc 13: a target that asks for C++20 alone
  # fails to generate, or is compiled as C++17 without a word.
  # tests/house/cuda_standard.cu holds us to C++20.
  if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>)
  # What a kernel instance is compiled with, in every build type: optimised, for the device alone.
  separate_arguments(WARPLEDGER_INSTANCE_FLAGS UNIX_COMMAND "${CMAKE_CUDA_FLAGS}")
  list(APPEND WARPLEDGER_INSTANCE_FLAGS -O3 -DNDEBUG -std=c++20 --expt-relaxed-constexpr)
  # Where it looks for headers. Each instance reads those that nvcc includes by itself, which costs
  # more than its own do: kernels/lean_cuda has short ones for the toolkit that they were compared
  # with. Another toolkit's parts may need each other in another order, so it keeps its own.
  set(WARPLEDGER_INSTANCE_INCLUDES -I${PROJECT_SOURCE_DIR} -I${PROJECT_BINARY_DIR}/generated)
  if(CMAKE_CUDA_COMPILER_VERSION MATCHES "^13\\.0\\.")
    list(PREPEND WARPLEDGER_INSTANCE_INCLUDES -I${PROJECT_SOURCE_DIR}/kernels/lean_cuda)
  endif()
  if(WARPLEDGER_WERROR)
    add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Werror all-warnings>")
    list(APPEND WARPLEDGER_INSTANCE_FLAGS -Werror all-warnings)
  endif()
endif()
