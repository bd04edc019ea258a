// SPDX-License-Identifier: Apache-2.0
// The part of standings where each contender was timed alone.

#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reports/model/derived/beside_peers.h"
#include "reports/model/records.h"

namespace warpledger::report {

// Problems whose contenders were beside the same peers: a mean over them compares like with like.
struct PeerGroup {
  bool in_8_bits = false;  // of all contenders
  std::set<std::string> peers;
  std::vector<Contest> contests;  // a problem once, of the newest record
};

// That with the most peers first; those in 8 bits last.
std::vector<PeerGroup> GroupsOf(const std::vector<ReadRecord>& records);

// "Each contender alone …: … is **1.116×** over the best of cudnn and fa3" for a README.
std::string AloneSentence(const PeerGroup& group, std::string_view gpu);

// The section of the page, with a table of problems for each group.
std::string AloneSection(const std::vector<PeerGroup>& groups);

}  // namespace warpledger::report
