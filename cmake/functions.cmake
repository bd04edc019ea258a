# SPDX-License-Identifier: Apache-2.0
# The functions that every CMakeLists.txt of the tree is written with.

# warpledger_library(NAME <target> [SOURCES <files>] [LIBS <targets>] [COMPUTES])
#
# One library of the house; without SOURCES it is header-only (INTERFACE). COMPUTES: its own code
# takes time in a run, in a check or in a verdict. The others read and write text.
function(warpledger_library)
  cmake_parse_arguments(PARSE_ARGV 0 arg "COMPUTES" "NAME" "SOURCES;LIBS")
  _warpledger_require(warpledger_library NAME)
  if(arg_SOURCES)
    add_library(${arg_NAME} STATIC ${arg_SOURCES})
    target_link_libraries(${arg_NAME} PUBLIC ${arg_LIBS})
    if(arg_COMPUTES)
      _warpledger_precompile(${arg_NAME} warpledger_precompiled_computing)
    else()
      target_compile_options(${arg_NAME} PRIVATE ${_warpledger_text_options})
      _warpledger_precompile(${arg_NAME} warpledger_precompiled_text)
    endif()
    # CMake 3.31 and later would join CUDA sources too, which share little.
    set(cuda_sources ${arg_SOURCES})
    list(FILTER cuda_sources INCLUDE REGEX "\\.cu$")
    set_source_files_properties(${cuda_sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    # Several sources in one translation unit share the templates that they instantiate, which
    # most of a host file's compile is.
    set_target_properties(${arg_NAME} PROPERTIES UNITY_BUILD ${WARPLEDGER_BATCH_COMPILE}
                                                 UNITY_BUILD_BATCH_SIZE 6)
  else()
    add_library(${arg_NAME} INTERFACE)
    target_link_libraries(${arg_NAME} INTERFACE ${arg_LIBS})
  endif()
endfunction()

# warpledger_add_tests(NAME <program> SOURCES <..._test.cc> [LIBS <targets>] [PREFIX <prefix>]
#                      LABELS <cpu|codegen|plots|docs|slow|long>... [COMPUTES])
#
# Sources of CPU tests that share libraries: one GoogleTest program (tests/main.cc), and one
# test of ctest's for each source, <prefix><path>, as in kernels_mma_kv8_test for mma/kv8_test.cc.
# Helpers of two sources need different names: several sources are compiled as one.
function(warpledger_add_tests)
  cmake_parse_arguments(PARSE_ARGV 0 arg "COMPUTES" "NAME;PREFIX" "SOURCES;LIBS;LABELS")
  _warpledger_require(warpledger_add_tests NAME SOURCES LABELS)
  _warpledger_return_if_left_out()
  _warpledger_test_program(${arg_NAME} "${arg_SOURCES}" "${arg_LIBS}" warpledger_test_main
                           ${arg_COMPUTES})
  set_target_properties(${arg_NAME} PROPERTIES UNITY_BUILD ${WARPLEDGER_BATCH_COMPILE}
                                               UNITY_BUILD_BATCH_SIZE 8)
  foreach(source IN LISTS arg_SOURCES)
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE path)
    cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/tests)
    string(REGEX REPLACE "\\.cc$" "" name ${arg_PREFIX}${source})
    string(REPLACE "/" "_" name ${name})
    add_test(NAME ${name} COMMAND ${arg_NAME} --source=${path}
             WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    _warpledger_test_properties(${name} "${arg_LABELS}" "")
  endforeach()
endfunction()

# warpledger_add_test(NAME <snake_case> SOURCES <files> [LIBS <targets>]
#                     LABELS <cpu|gpu|codegen|plots|docs|slow|long>... [ARGS <arguments>]
#                     [TIMEOUT <seconds>] [COMPUTES])
#
# `./test --quick` leaves out what is slow: tests of more than some ten seconds. Without `--long`,
# `./test` leaves out what is long: minutes.
#
# A GoogleTest program of its own. With the label gpu its main is tests/gpu_main.cc: without
# a usable GPU the program says why and exits with 77, which ctest reports as
# skipped. Where the build has no CUDA, gpu and codegen tests are left out and
# named in the configure summary, as what WARPLEDGER_QUICK leaves out is.
function(warpledger_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "COMPUTES" "NAME;TIMEOUT" "SOURCES;LIBS;LABELS;ARGS")
  _warpledger_require(warpledger_add_test NAME SOURCES LABELS)
  _warpledger_return_if_left_out()
  if("gpu" IN_LIST arg_LABELS)
    set(main warpledger_gpu_test_main)
  else()
    set(main warpledger_test_main)
  endif()
  _warpledger_test_program(${arg_NAME} "${arg_SOURCES}" "${arg_LIBS}" ${main} ${arg_COMPUTES})
  if("gpu" IN_LIST arg_LABELS)
    # They travel with the programs: tests/gpu_tests.sh runs them from there.
    install(TARGETS ${arg_NAME} RUNTIME DESTINATION share/warpledger/gpu_tests)
  endif()
  add_test(NAME ${arg_NAME} COMMAND ${arg_NAME} ${arg_ARGS}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  _warpledger_test_properties(${arg_NAME} "${arg_LABELS}" "${arg_TIMEOUT}")
endfunction()

# warpledger_add_python_test(SCRIPT <file.py> [NAME <snake_case>] [ARGS <arguments>]
#                            LABELS <...> [TIMEOUT <seconds>] [PROPERTIES <name> <value> ...])
#
# A Python test, called as its file unless NAME says otherwise, run by WARPLEDGER_PYTHON from the
# repository's root, with its own folder and those of _warpledger_python_folders on PYTHONPATH. A
# script with a main of its own is called, any other is a module of unittest's. Exit code 77 means
# skipped.
function(warpledger_add_python_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;SCRIPT;TIMEOUT" "ARGS;LABELS;PROPERTIES")
  _warpledger_require(warpledger_add_python_test SCRIPT LABELS)
  if(NOT arg_NAME)
    get_filename_component(arg_NAME ${arg_SCRIPT} NAME_WE)
  endif()
  _warpledger_return_if_left_out()
  get_filename_component(script ${arg_SCRIPT} ABSOLUTE)
  if(NOT EXISTS ${script})
    message(FATAL_ERROR "Test ${arg_NAME}: there is no ${script}.")
  endif()
  get_filename_component(folder ${script} DIRECTORY)
  file(STRINGS ${script} main REGEX "^if __name__ ==")
  if(main)
    set(unittest)
  else()
    set(unittest -m unittest)
  endif()
  add_test(NAME ${arg_NAME} COMMAND ${WARPLEDGER_PYTHON} -B ${unittest} ${script} ${arg_ARGS}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  _warpledger_test_properties(${arg_NAME} "${arg_LABELS}" "${arg_TIMEOUT}")
  if(arg_PROPERTIES)
    set_tests_properties(${arg_NAME} PROPERTIES ${arg_PROPERTIES})
  endif()
  set_property(TEST ${arg_NAME} PROPERTY ENVIRONMENT
               "PYTHONPATH=${folder}:${_warpledger_python_path}"
               "WARPLEDGER_PROGRAM=$<$<TARGET_EXISTS:warpledger>:$<TARGET_FILE:warpledger>>"
               "WARPLEDGER_BUILD=${PROJECT_BINARY_DIR}"
               "WARPLEDGER_HAS_KERNELS=${WARPLEDGER_HAS_CUDA}"
               "MPLBACKEND=Agg"
               "MPLCONFIGDIR=${PROJECT_BINARY_DIR}/matplotlib")
endfunction()

# warpledger_add_build_test(NAME <snake_case> TARGET <target> LABELS <...> [TIMEOUT <seconds>])
#
# Builds a target that is not part of `all`. Tests that need it name this one in FIXTURES_REQUIRED.
function(warpledger_add_build_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;TARGET;TIMEOUT" "LABELS")
  _warpledger_require(warpledger_add_build_test NAME TARGET LABELS)
  _warpledger_return_if_left_out()
  add_test(NAME ${arg_NAME}
           COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target ${arg_TARGET})
  _warpledger_test_properties(${arg_NAME} "${arg_LABELS}" "${arg_TIMEOUT}")
  set_tests_properties(${arg_NAME} PROPERTIES FIXTURES_SETUP ${arg_NAME})
endfunction()

# --- Private -----------------------------------------------------------------

set(_warpledger_python_folders . cmake micro reports reports/explorer tests tests/house tests/reports/testdata)
list(TRANSFORM _warpledger_python_folders PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE
     _warpledger_python_path)
list(JOIN _warpledger_python_path ":" _warpledger_python_path)

# For libraries that read and write text: -O3 takes half as long again to compile, and gains nothing.
set(_warpledger_text_options $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)

# A test's own code runs once and is compiled in every fresh build, so that optimising it costs
# more than it saves. COMPUTES marks the tests for which it does not: emulated kernels,
# simulations, loops over all configurations. What is tested is compiled as ever.
set(_warpledger_test_options $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O0>)
set(_warpledger_computing_test_options $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)

function(_warpledger_test_program name sources libs main computes)
  if(computes)
    set(kind computing_test)
  else()
    set(kind test)
  endif()
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE ${libs} GTest::gmock GTest::gtest ${main} Threads::Threads)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/bin)
  target_compile_options(${name} PRIVATE ${_warpledger_${kind}_options})
  _warpledger_precompile(${name} warpledger_precompiled_${kind})
endfunction()

# Headers of others that many host files include, parsed once for all of them. A missing
# #include of one of them shows in the presets debug and sanitize, which precompile nothing.
function(_warpledger_precompiled_headers name)
  if(NOT WARPLEDGER_BATCH_COMPILE)
    return()
  endif()
  set(empty ${PROJECT_BINARY_DIR}/generated/${name}.cc)
  file(CONFIGURE OUTPUT ${empty} CONTENT "")
  add_library(${name} OBJECT ${empty})
  set(headers <algorithm> <cmath> <cstdint> <map> <optional> <set> <string> <vector>
              <absl/status/statusor.h> <absl/strings/str_cat.h> <absl/strings/str_format.h>
              <absl/strings/str_split.h> <nlohmann/json.hpp>)
  if(name MATCHES "((computing_)?test|text)$")
    # Each compiler asks for the options of the header that it precompiled, -O among them.
    target_compile_options(${name} PRIVATE ${_warpledger_${CMAKE_MATCH_1}_options})
  endif()
  if(name MATCHES "test$")
    target_link_libraries(${name} PRIVATE GTest::gmock GTest::gtest)
    list(APPEND headers <gmock/gmock.h> <gtest/gtest.h>)
  endif()
  list(TRANSFORM headers REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:\\1>")
  target_link_libraries(${name} PRIVATE absl::statusor absl::strings absl::str_format
                                        nlohmann_json::nlohmann_json)
  target_precompile_headers(${name} PRIVATE ${headers})
endfunction()
_warpledger_precompiled_headers(warpledger_precompiled_computing)
_warpledger_precompiled_headers(warpledger_precompiled_text)
if(WARPLEDGER_TESTS)
  _warpledger_precompiled_headers(warpledger_precompiled_test)
  _warpledger_precompiled_headers(warpledger_precompiled_computing_test)
endif()

function(_warpledger_precompile target holder)
  if(TARGET ${holder})
    target_precompile_headers(${target} REUSE_FROM ${holder})
  endif()
endfunction()

macro(_warpledger_require function)
  foreach(_name ${ARGN})
    if(NOT arg_${_name})
      message(FATAL_ERROR "${function}(NAME ${arg_NAME}): ${_name} is missing.")
    endif()
  endforeach()
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${function}(NAME ${arg_NAME}): unknown: ${arg_UNPARSED_ARGUMENTS}")
  endif()
endmacro()

# Returns from a function that adds a test which this build leaves out.
macro(_warpledger_return_if_left_out)
  foreach(_label IN LISTS arg_LABELS)
    if(NOT _label MATCHES "^(cpu|gpu|codegen|plots|docs|slow|long)$")
      message(FATAL_ERROR "Test ${arg_NAME}: label '${_label}' is none of cpu, gpu, codegen, plots, "
                          "docs, slow, long.")
    endif()
    if((_label MATCHES "^(gpu|codegen)$" AND NOT WARPLEDGER_HAS_CUDA)
       OR (_label MATCHES "^(gpu|slow|long)$" AND WARPLEDGER_QUICK))
      set_property(GLOBAL APPEND PROPERTY WARPLEDGER_LEFT_OUT_TESTS ${arg_NAME})
      return()
    endif()
  endforeach()
endmacro()

function(_warpledger_test_properties name labels timeout)
  if(NOT timeout)
    set(timeout 600)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" SKIP_RETURN_CODE 77
                                          TIMEOUT ${timeout})
  if("gpu" IN_LIST labels)
    # Two tests at once on one GPU would disturb each other's times and memory.
    set_tests_properties(${name} PROPERTIES RESOURCE_LOCK gpu)
  endif()
endfunction()

# Says what this build holds and what it leaves out, so that nothing is missing
# in silence.
function(warpledger_print_summary)
  message(STATUS "Warpledger ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}")
  if(WARPLEDGER_HAS_CUDA)
    message(STATUS "  CUDA ${CMAKE_CUDA_COMPILER_VERSION} for "
                   "${CMAKE_CUDA_ARCHITECTURES}${WARPLEDGER_LADDER_ARCHITECTURES_TOLD}")
  else()
    message(STATUS "  no nvcc: left out are the kernels, the commands that launch them and the "
                   "gpu and codegen tests. Install the CUDA toolkit, or set CUDACXX, to have them.")
  endif()
  get_property(left_out GLOBAL PROPERTY WARPLEDGER_LEFT_OUT_TESTS)
  if(left_out)
    list(JOIN left_out ", " left_out)
    message(STATUS "  tests left out: ${left_out}")
  endif()
  if(WARPLEDGER_HAS_CUDA AND NOT WARPLEDGER_CUBLASLT_HEADER)
    message(STATUS "  no cublasLt.h: left out is the projection by cuBLASLt, which the design "
                   "'fusion' compares with (libcublas-dev of the CUDA toolkit)")
  endif()
  if(WARPLEDGER_MICRO AND NOT benchmark_FOUND)
    message(STATUS "  no Google Benchmark: left out are the microbenchmarks (libbenchmark-dev)")
  endif()
  message(STATUS "  Python: ${WARPLEDGER_PYTHON}")
endfunction()
