# SPDX-License-Identifier: Apache-2.0
# warpledger_source_text(<variable> <file>)    the file's text, without the line that names its licence
# warpledger_source_sha256(<variable> <file>)  SHA-256 of that text
#
# Records compare sources by these hashes. A licence line changes nothing that a record is about, so
# a hash taken before the line came is the hash with it.

function(warpledger_source_text variable file)
  file(READ ${file} text)
  string(REGEX REPLACE "[^\n]*SPDX-License-Identifier[^\n]*\n" "" text "${text}")
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

function(warpledger_source_sha256 variable file)
  warpledger_source_text(text ${file})
  string(SHA256 hash "${text}")
  set(${variable} ${hash} PARENT_SCOPE)
endfunction()
