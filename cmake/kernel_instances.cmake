# SPDX-License-Identifier: Apache-2.0
# warpledger_instance_targets(<variable> <set>)  nvcc's options for the architectures of a set
function(warpledger_instance_targets variable set)
  set(targets ${WARPLEDGER_CUDA_ARCHITECTURES})
  if(set MATCHES "^(wgmma|resident)")
    # wgmma and setmaxnreg exist in the architecture-specific target alone.
    set(targets 90a-real)
  elseif(set MATCHES "90$")
    # Dependent launches and clusters: no older GPU has them.
    list(FILTER targets INCLUDE REGEX "^(9[0-9]|[1-9][0-9][0-9])")
    if(NOT targets)
      set(targets 90-real)
    endif()
  elseif(set MATCHES "_ladder$")
    set(targets ${WARPLEDGER_ALL_ARCHITECTURES})
  endif()
  list(TRANSFORM targets REPLACE "^([0-9]+[a-z]?)(-real)?$"
                                 "--generate-code=arch=compute_\\1,code=[sm_\\1]")
  if(set MATCHES "_strided$")
    # Machine code for GPUs 8.x, and PTX, of which the driver makes code for newer ones.
    set(targets "--generate-code=arch=compute_80,code=[sm_80,compute_80]")
  endif()
  set(${variable} ${targets} PARENT_SCOPE)
endfunction()

# warpledger_kernel_instances(NAME <target> DIRECTORY <folder> INSTANCES <lines>...)
#
# One library of compiled kernel instances and of how to launch them. Each line names an instance's
# set and source; the folder holds the sources, instances.json, the table instances.cc
# (AllInstances) and instance_code.cc, which embeds the code. All of a set is compiled for the same
# architectures. Whoever measures instances calls this: the kernels know no list of them.
function(warpledger_kernel_instances)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;DIRECTORY" "INSTANCES")
  set(generated ${arg_DIRECTORY})
  set(sets)
  foreach(instance IN LISTS arg_INSTANCES)
    if(NOT instance MATCHES "^([a-z0-9_]+) (.+)$")
      message(FATAL_ERROR "warpledger_kernel_instances: '${instance}' is no set and source")
    endif()
    list(APPEND sets ${CMAKE_MATCH_1})
    list(APPEND ${CMAKE_MATCH_1}_sources "${CMAKE_MATCH_2}")
  endforeach()
  list(REMOVE_DUPLICATES sets)

  # The instances' fat binaries, each beside its source, with what the launcher keeps of its compile:
  # PTX, cubins and ptxas's report of the very code that is embedded. One compile per kernel: where
  # several share a translation unit, the compiler's order of terms in one kernel's addresses depends
  # on the others (32 of 662 kernels had other machine code, eight to a unit).
  set(instance_code)
  foreach(set IN LISTS sets)
    warpledger_instance_targets(targets ${set})
    # The sources of a set include the same headers, so that one of them tells the dependencies of
    # all: nvcc preprocesses a source once more to list its own.
    list(GET ${set}_sources 0 first)
    set(headers ${generated}/${set}.headers)
    set(compile ${CMAKE_CUDA_COMPILER} ${targets} ${WARPLEDGER_INSTANCE_FLAGS}
                ${WARPLEDGER_INSTANCE_INCLUDES})
    add_custom_command(
      OUTPUT ${headers}
      COMMAND ${compile} -M -MT ${headers} -MF ${headers}.d ${first}
      COMMAND ${CMAKE_COMMAND} -E touch ${headers}
      DEPENDS ${first}
      DEPFILE ${headers}.d
      COMMENT "Listing the headers of ${set}"
      VERBATIM)
    foreach(source IN LISTS ${set}_sources)
      get_filename_component(name ${source} NAME_WE)
      set(code ${generated}/${name}.fatbin)
      add_custom_command(
        OUTPUT ${code}
        COMMAND ${PROJECT_SOURCE_DIR}/cmake/instance_launcher.sh ${compile} -fatbin ${source} -o ${code}
        DEPENDS ${source} ${headers} ${PROJECT_SOURCE_DIR}/cmake/instance_launcher.sh
        COMMENT "Compiling ${name}"
        VERBATIM)
      list(APPEND instance_code ${code})
    endforeach()
  endforeach()
  # Alone, because a unit of several sources would not be compiled again after its kernels.
  set_source_files_properties(${generated}/instance_code.cc PROPERTIES
                              OBJECT_DEPENDS "${instance_code}" SKIP_UNITY_BUILD_INCLUSION ON)
  warpledger_library(NAME ${arg_NAME}
    SOURCES ${generated}/instance_code.cc ${generated}/instances.cc
    LIBS warpledger_launch)
  target_include_directories(${arg_NAME} PRIVATE ${PROJECT_SOURCE_DIR})

  # resources.json and codegen.json, which every record copies.
  set(codegen_dir ${PROJECT_BINARY_DIR}/codegen)
  add_custom_command(
    OUTPUT ${codegen_dir}/resources.json ${codegen_dir}/codegen.json
    COMMAND ${WARPLEDGER_PYTHON} -B ${PROJECT_SOURCE_DIR}/cmake/collect_codegen.py
            --instances ${generated}/instances.json --keep-root ${generated}
            --out-dir ${codegen_dir} --kernel-sources ${WARPLEDGER_KERNEL_SOURCE_SHA256}
    DEPENDS ${generated}/instances.json ${instance_code}
            ${PROJECT_SOURCE_DIR}/cmake/collect_codegen.py
    COMMENT "Collecting resources and machine-code facts of the kernel instances"
    VERBATIM)
  add_custom_target(warpledger_codegen ALL DEPENDS ${codegen_dir}/resources.json
                                                   ${codegen_dir}/codegen.json)
  if(NOT SKBUILD) # a wheel's program runs callables, and no kernel of these
    install(FILES ${codegen_dir}/resources.json ${codegen_dir}/codegen.json
            DESTINATION share/warpledger/codegen)
  endif()
endfunction()
