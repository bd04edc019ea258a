# SPDX-License-Identifier: Apache-2.0
# warpledger_gpu_architectures(<variable> <nvcc>)
#
# Sets <variable> to the architectures of this machine's GPUs, oldest first ("86-real;90-real").
# Left out are GPUs older than sm_80, for which there is no kernel, and with a word those that
# <nvcc> does not know. Empty where nvidia-smi is absent, fails or is too old for the question.
function(warpledger_gpu_architectures variable nvcc)
  # A driver that is being loaded can keep nvidia-smi waiting; a build needs no GPU.
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
                  OUTPUT_VARIABLE capabilities RESULT_VARIABLE failed ERROR_QUIET TIMEOUT 30)
  if(NOT failed STREQUAL "0")
    set(${variable} "" PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND ${nvcc} --list-gpu-code OUTPUT_VARIABLE known RESULT_VARIABLE failed
                  ERROR_QUIET)
  string(REGEX REPLACE "[\r\n]+" ";" capabilities "${capabilities}")
  string(REGEX REPLACE "[\r\n]+" ";" known "${known}")
  set(architectures)
  foreach(capability IN LISTS capabilities)
    if(NOT capability MATCHES "^ *([0-9]+)\\.([0-9]) *$")
      continue()
    endif()
    set(number ${CMAKE_MATCH_1}${CMAKE_MATCH_2})
    if(number LESS 80)
      continue()
    endif()
    if(failed STREQUAL "0" AND NOT sm_${number} IN_LIST known)
      message(STATUS "${nvcc} does not know this machine's sm_${number}; nothing is compiled "
                     "for it")
      continue()
    endif()
    list(APPEND architectures ${number}-real)
  endforeach()
  list(REMOVE_DUPLICATES architectures)
  list(SORT architectures COMPARE NATURAL)
  set(${variable} "${architectures}" PARENT_SCOPE)
endfunction()
