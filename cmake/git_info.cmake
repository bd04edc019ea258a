# SPDX-License-Identifier: Apache-2.0
# Script: writes the commit that the sources are at, for run.json.
#   cmake -DSOURCE_DIR=… -DOUT=… -P git_info.cmake
# The file is touched only when it changes, so that nothing is rebuilt in vain.

execute_process(COMMAND git rev-parse HEAD WORKING_DIRECTORY ${SOURCE_DIR} OUTPUT_VARIABLE sha
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
# Sources unpacked inside another repository are at none of its commits.
execute_process(COMMAND git rev-parse --show-toplevel WORKING_DIRECTORY ${SOURCE_DIR}
                OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
get_filename_component(top "${top}" REALPATH)
get_filename_component(sources "${SOURCE_DIR}" REALPATH)
set(dirty false)
if(failed OR NOT top STREQUAL sources)
  set(sha "unknown")
else()
  # Reports and documents don't change what is measured.
  execute_process(COMMAND git status --porcelain -- kernels ablations micro cmake CMakeLists.txt
                  WORKING_DIRECTORY ${SOURCE_DIR} OUTPUT_VARIABLE changes ERROR_QUIET)
  if(changes)
    set(dirty true)
  endif()
endif()
set(text "// Written by cmake/git_info.cmake at each build.

#pragma once

namespace warpledger {

inline constexpr char kGitSha[] = \"${sha}\";
inline constexpr bool kGitDirty = ${dirty};

}  // namespace warpledger
")
set(old "")
if(EXISTS ${OUT})
  file(READ ${OUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUT} "${text}")
endif()
