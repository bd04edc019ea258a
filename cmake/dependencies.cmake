# SPDX-License-Identifier: Apache-2.0
# The libraries we stand on, all from the distribution: on Debian and Ubuntu
# cmake/setup.sh lists and installs their packages.

find_package(absl REQUIRED)
find_package(nlohmann_json 3.10 REQUIRED)
find_package(Threads REQUIRED)
if(WARPLEDGER_TESTS)
  find_package(GTest REQUIRED)
endif()

# Packed records: libzstd, and libmd for SHA-256 (the distribution's smallest library that has it,
# and nothing else is needed of one).
set(warpledger_pack_libraries zstd md)
set(warpledger_pack_headers zstd.h sha2.h)
foreach(library header IN ZIP_LISTS warpledger_pack_libraries warpledger_pack_headers)
  set(names ${library})
  if(WARPLEDGER_STATIC)
    set(names lib${library}.a ${library})
  endif()
  find_library(WARPLEDGER_${library}_LIBRARY NAMES ${names} REQUIRED)
  add_library(warpledger_lib${library} INTERFACE)
  find_path(WARPLEDGER_${library}_INCLUDE ${header} REQUIRED)
  target_include_directories(warpledger_lib${library} INTERFACE ${WARPLEDGER_${library}_INCLUDE})
  target_link_libraries(warpledger_lib${library} INTERFACE ${WARPLEDGER_${library}_LIBRARY})
endforeach()

# Studies: TOML, header-only (Debian's package would link a shared library).
find_path(WARPLEDGER_TOMLPLUSPLUS_INCLUDE toml++/toml.h REQUIRED)
add_library(warpledger_tomlplusplus INTERFACE)
target_include_directories(warpledger_tomlplusplus INTERFACE ${WARPLEDGER_TOMLPLUSPLUS_INCLUDE})

if(WARPLEDGER_MICRO)
  find_package(benchmark QUIET)
endif()

# Debian's CMake files name the shared libraries although the static ones lie
# beside them; the install tree must run where neither is installed.
if(WARPLEDGER_STATIC)
  get_directory_property(imported_targets IMPORTED_TARGETS)
  foreach(target IN LISTS imported_targets)
    if(NOT target MATCHES "^(absl|benchmark)::")
      continue()
    endif()
    get_target_property(type ${target} TYPE)
    if(NOT type STREQUAL "SHARED_LIBRARY")
      continue()
    endif()
    get_target_property(configurations ${target} IMPORTED_CONFIGURATIONS)
    foreach(configuration IN LISTS configurations)
      get_target_property(shared ${target} IMPORTED_LOCATION_${configuration})
      string(REGEX REPLACE "\\.so(\\.[0-9]+)*$" ".a" static "${shared}")
      if(EXISTS ${static})
        set_target_properties(${target} PROPERTIES IMPORTED_LOCATION_${configuration} ${static})
      endif()
    endforeach()
  endforeach()
endif()

# The interpreter that plots and Python tests run with. cmake/setup.sh makes the
# virtual environment, with the pinned matplotlib, before it configures.
if(NOT WARPLEDGER_PYTHON)
  find_program(WARPLEDGER_PYTHON NAMES python python3 PATHS ${PROJECT_BINARY_DIR}/venv/bin
               ${PROJECT_SOURCE_DIR}/build/venv/bin NO_DEFAULT_PATH
               DOC "Python interpreter with the packages of requirements.txt")
  find_program(WARPLEDGER_PYTHON NAMES python3 REQUIRED)
endif()
