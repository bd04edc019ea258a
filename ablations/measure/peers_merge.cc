// SPDX-License-Identifier: Apache-2.0
#include "ablations/measure/peers_merge.h"

#include "ablations/base/files.h"
#include "ablations/record/store.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace warpledger::ablations {
namespace {

constexpr char kNotMeasured[] = "not measured: ";

std::string FullName(const char* peer) { return absl::StrCat(kPeerPrefix, peer); }

bool IsBackend(const std::string& name) {
  for (const char* peer : kPeers) {
    if (name == FullName(peer)) return true;
  }
  return false;
}

void AddReason(const std::string& reason, PeerInfo* info) {
  if (reason.empty() || absl::StrContains(info->reason, reason)) return;
  absl::StrAppend(&info->reason, info->reason.empty() ? "" : "; ", reason);
}

}  // namespace

PeerFindings::PeerFindings(const std::vector<PeerInfo>& known) {
  for (const PeerInfo& info : known) peers_[info.name] = info;
}

void PeerFindings::Take(const PeerInfo& line) {
  if (!IsBackend(line.name)) {
    NotMeasured(line.reason);
    return;
  }
  PeerInfo& info = peers_[line.name];
  info.name = line.name;
  if (!line.version.empty()) info.version = line.version;
  // It could not be asked in an earlier call of the run, and now it answered.
  if (absl::StartsWith(info.reason, kNotMeasured)) info.reason.clear();
  info.available = info.available || line.available;
  AddReason(line.reason, &info);
  info.checks.insert(info.checks.end(), line.checks.begin(), line.checks.end());
}

void PeerFindings::NotMeasured(std::string_view why) {
  for (const char* peer : kPeers) {
    PeerInfo& info = peers_[FullName(peer)];
    info.name = FullName(peer);
    if (!info.available) info.reason = absl::StrCat(kNotMeasured, std::string(why));
  }
}

std::vector<PeerInfo> PeerFindings::All() const {
  std::vector<PeerInfo> all;
  for (const char* peer : kPeers) {
    const auto found = peers_.find(FullName(peer));
    if (found != peers_.end()) all.push_back(found->second);
  }
  return all;
}

absl::StatusOr<PeerFindings> LoadPeerFindings(const std::string& dir) {
  const absl::StatusOr<std::string> text = ReadFile(absl::StrCat(dir, "/", kPeersFile));
  if (absl::IsNotFound(text.status())) return PeerFindings();
  if (!text.ok()) return text.status();
  const absl::StatusOr<PeersFile> peers = FromText<PeersFile>(*text);
  if (!peers.ok()) {
    return absl::DataLossError(absl::StrCat(
        dir, "/", kPeersFile, ": ", std::string(peers.status().message()),
        ". It holds the checks of peers that are timed already; copy it again, or start anew."));
  }
  return PeerFindings(peers->peers);
}

}  // namespace warpledger::ablations
