# SPDX-License-Identifier: Apache-2.0
# warpledger_source_text(<variable> <file>)  the file's text, without the line that names its licence
# warpledger_source_hash(<variable> <files>...)
# warpledger_former_hash(<variable>)
#
# Records compare sources by these hashes, which tell what the sources do and not where they lie: a
# hash is made of the files' code, without comments, #include lines and header guards, and in the
# order of the codes' own hashes. So a file can be moved, or a comment mended, and old records are
# still of this source.
#
# former_hashes.txt has lines `<hash> <former hash> <why they mean the same>`. Where the hash is one
# of them, the former one is set, which records of then have.
set(WARPLEDGER_FORMER_HASHES ${CMAKE_CURRENT_LIST_DIR}/former_hashes.txt)
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${WARPLEDGER_FORMER_HASHES})
endif()

function(warpledger_source_text variable file)
  file(READ ${file} text)
  string(REGEX REPLACE "[^\n]*SPDX-License-Identifier[^\n]*\n" "" text "${text}")
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

function(warpledger_former_hash variable)
  file(STRINGS ${WARPLEDGER_FORMER_HASHES} same REGEX "^${${variable}} ")
  if(same)
    string(REGEX REPLACE "^[0-9a-f]+ ([0-9a-f]+) .*" "\\1" former "${same}")
    set(${variable} ${former} PARENT_SCOPE)
  endif()
endfunction()

function(warpledger_source_hash variable)
  set(hashes)
  foreach(file IN LISTS ARGN)
    file(READ ${file} text)
    string(REGEX REPLACE "[^\n]*SPDX-License-Identifier[^\n]*\n" "" text "${text}")
    if(NOT file MATCHES "\\.py$")
      string(REGEX REPLACE "[ \t\n]//[^\n]*" "" text "\n${text}")
      string(REGEX REPLACE "#include[^\n]*" "" text "${text}")
      string(REGEX REPLACE "#(ifndef|define) WARPLEDGER_[A-Z0-9_]*H_\n" "" text "${text}")
      # Of a guard its end is left, which the hashes of earlier records hold.
      string(REGEX REPLACE "#pragma once\n(.*)" "\\1#endif\n" text "${text}")
    endif()
    string(REGEX REPLACE "[ \t\n]+" " " text "${text}")
    string(SHA256 hash "${text}")
    list(APPEND hashes ${hash})
  endforeach()
  list(SORT hashes)
  string(SHA256 hash "${hashes}")
  warpledger_former_hash(hash)
  set(${variable} ${hash} PARENT_SCOPE)
endfunction()
