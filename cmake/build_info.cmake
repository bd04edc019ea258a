# SPDX-License-Identifier: Apache-2.0
# Writes warpledger_build_info.h: the facts about this build that a record keeps
# (run.json's `toolchain`).

set(WARPLEDGER_NVCC_VERSION "")
set(WARPLEDGER_CUDA_FLAGS "")
set(WARPLEDGER_HAS_CUDA_01 0)
if(WARPLEDGER_HAS_CUDA)
  set(WARPLEDGER_HAS_CUDA_01 1)
  set(WARPLEDGER_NVCC_VERSION "${CMAKE_CUDA_COMPILER_VERSION}")
  list(JOIN WARPLEDGER_INSTANCE_FLAGS " " WARPLEDGER_CUDA_FLAGS)
endif()
set(WARPLEDGER_LADDER_ARCHITECTURES_TOLD)
if(WARPLEDGER_HAS_CUDA)
  foreach(architecture IN LISTS WARPLEDGER_LADDER_ARCHITECTURES)
    if(NOT architecture IN_LIST WARPLEDGER_CUDA_ARCHITECTURES)
      string(APPEND WARPLEDGER_LADDER_ARCHITECTURES_TOLD ";${architecture} (ladders alone)")
    endif()
  endforeach()
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/warpledger_build_info.h.in
               ${PROJECT_BINARY_DIR}/generated/warpledger_build_info.h @ONLY)
