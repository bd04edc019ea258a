# SPDX-License-Identifier: Apache-2.0
# What goes into the install tree besides the programs that other directories
# install, and the tarball: `cmake --build build --target package` writes
# build/warpledger-<version>-linux-x86_64.tar.gz with stripped programs.

include(GNUInstallDirs)
set(share ${CMAKE_INSTALL_DATADIR}/warpledger)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/plots DESTINATION ${share} FILES_MATCHING PATTERN "*.py"
        PATTERN "__pycache__" EXCLUDE)
install(FILES ${PROJECT_SOURCE_DIR}/requirements.txt DESTINATION ${share})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/ablations/subjects/sdpa/peers
        DESTINATION ${share}/ablations/subjects/sdpa FILES_MATCHING PATTERN "*.py"
        PATTERN "__pycache__" EXCLUDE)
install(FILES ${PROJECT_SOURCE_DIR}/ablations/subjects/python/warpledger/driver.py
        DESTINATION ${share}/ablations/subjects/python/warpledger)

install(PROGRAMS ${PROJECT_SOURCE_DIR}/ablations/cli/archive/bundle.py
        ${PROJECT_SOURCE_DIR}/ablations/cli/archive/bundle_replay.py
        ${PROJECT_SOURCE_DIR}/ablations/cli/archive/bundle_verify.py
        DESTINATION ${share}/ablations/cli/archive)

install(FILES ${PROJECT_SOURCE_DIR}/kernels/sdpa/machine_code.json
        DESTINATION ${share}/kernels/sdpa)

string(TOLOWER "${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}" platform)
set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_NAME warpledger)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_FILE_NAME warpledger-${PROJECT_VERSION}-${platform})
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR})
set(CPACK_INCLUDE_TOPLEVEL_DIRECTORY ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
include(CPack)
