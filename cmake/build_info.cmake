# Writes warpledger_build_info.h: the facts about this build that a record keeps
# (run.json's `toolchain`). Link `warpledger_build_info` to include it.

string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type_upper)
set(WARPLEDGER_NVCC_VERSION "")
set(WARPLEDGER_CUDA_FLAGS "")
set(WARPLEDGER_HAS_CUDA_01 0)
if(WARPLEDGER_HAS_CUDA)
  set(WARPLEDGER_HAS_CUDA_01 1)
  set(WARPLEDGER_NVCC_VERSION "${CMAKE_CUDA_COMPILER_VERSION}")
  get_directory_property(compile_options COMPILE_OPTIONS)
  # Only the options meant for CUDA, without CMake's generator expressions.
  set(cuda_options)
  foreach(option IN LISTS compile_options)
    if(option MATCHES "^\\$<\\$<COMPILE_LANGUAGE:CUDA>:(SHELL:)?(.*)>$")
      list(APPEND cuda_options "${CMAKE_MATCH_2}")
    endif()
  endforeach()
  list(JOIN cuda_options " " cuda_options)
  set(WARPLEDGER_CUDA_FLAGS "${CMAKE_CUDA_FLAGS} ${CMAKE_CUDA_FLAGS_${build_type_upper}}")
  string(APPEND WARPLEDGER_CUDA_FLAGS " ${cuda_options} ${CMAKE_CUDA20_STANDARD_COMPILE_OPTION}")
  string(STRIP "${WARPLEDGER_CUDA_FLAGS}" WARPLEDGER_CUDA_FLAGS)
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/warpledger_build_info.h.in
               ${PROJECT_BINARY_DIR}/generated/warpledger_build_info.h @ONLY)
add_library(warpledger_build_info INTERFACE)
target_include_directories(warpledger_build_info INTERFACE ${PROJECT_BINARY_DIR}/generated)
