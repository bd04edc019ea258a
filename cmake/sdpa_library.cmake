# SPDX-License-Identifier: Apache-2.0
# warpledger_sdpa_library(<folder of the generated instances>)
#
# libwarpledger_sdpa, shared and static, in library/ of the build: the C interface of
# kernels/sdpa/library, the code of its kernels, and of the CUDA runtime what the shared one needs.
function(warpledger_sdpa_library instances)
  set(kernels ${PROJECT_SOURCE_DIR}/kernels/sdpa)
  set(tables ${instances}/library)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${tables}/code.txt)
  file(STRINGS ${tables}/code.txt code)
  set_source_files_properties(${tables}/instance_code.cc PROPERTIES OBJECT_DEPENDS "${code}")
  add_library(sdpa_library_objects OBJECT
    ${tables}/instance_code.cc ${tables}/instances.cc ${kernels}/library/choice.cc
    ${kernels}/library/costs.cc ${kernels}/library/library.cc ${kernels}/library/request.cc
    ${kernels}/mma/launch.cc ${kernels}/resident/launch.cc
    ${kernels}/shared/kernel_instance.cc ${kernels}/shared/tensor_maps.cc
    ${kernels}/wgmma/join/join_kernel.cu ${kernels}/wgmma/launch.cc ${kernels}/wgmma/varlen/launch.cc
    ${kernels}/shared/sequences/sequence_plan.cu)
  # What another library needs of these files, it builds for itself: these are position-independent
  # and hide their names.
  set_target_properties(sdpa_library_objects PROPERTIES
    POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON CUDA_ARCHITECTURES "80;90a-real" UNITY_BUILD OFF)
  target_compile_definitions(sdpa_library_objects
                             PRIVATE WARPLEDGER_VERSION="${PROJECT_VERSION}")
  target_compile_options(sdpa_library_objects
                         PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>)
  target_include_directories(sdpa_library_objects PRIVATE
    ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated ${CUDAToolkit_INCLUDE_DIRS})
  add_dependencies(sdpa_library_objects warpledger_kernels)

  add_library(sdpa_library_shared SHARED $<TARGET_OBJECTS:sdpa_library_objects>)
  target_link_libraries(sdpa_library_shared PRIVATE CUDA::cudart_static)
  set(exports ${kernels}/library/exports.map)
  target_link_options(sdpa_library_shared PRIVATE "LINKER:--version-script=${exports}"
                      LINKER:--no-undefined LINKER:--exclude-libs,ALL)
  set_target_properties(sdpa_library_shared PROPERTIES LINK_DEPENDS ${exports})
  if(NOT SKBUILD) # a wheel has no links: each would be a copy
    set_target_properties(sdpa_library_shared PROPERTIES
      VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  endif()
  add_library(sdpa_library_static STATIC $<TARGET_OBJECTS:sdpa_library_objects>)
  set_target_properties(sdpa_library_shared sdpa_library_static PROPERTIES
    OUTPUT_NAME warpledger_sdpa LINKER_LANGUAGE CXX
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/library
    ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/library)

  add_executable(print_costs ${kernels}/library/print_costs.cc ${kernels}/library/choice.cc
                             ${kernels}/library/costs.cc)
  target_include_directories(print_costs PRIVATE
    ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated ${CUDAToolkit_INCLUDE_DIRS})

  install(TARGETS sdpa_library_shared LIBRARY DESTINATION lib)
  install(FILES ${kernels}/library/warpledger_sdpa.h DESTINATION include)
  if(NOT SKBUILD)
    install(TARGETS sdpa_library_static ARCHIVE DESTINATION lib)
  endif()
endfunction()
