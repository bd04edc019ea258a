// SPDX-License-Identifier: Apache-2.0
#include "ablations/measure/peers_merge.h"

#include "ablations/base/files.h"
#include "ablations/record/store.h"
#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace warpledger::ablations {
namespace {

constexpr char kNotMeasured[] = "not measured: ";

void AddReason(const std::string& reason, PeerInfo* info) {
  if (reason.empty() || absl::StrContains(info->reason, reason)) return;
  absl::StrAppend(&info->reason, info->reason.empty() ? "" : "; ", reason);
}

}  // namespace

PeerFindings::PeerFindings(std::vector<std::string> peers, const std::vector<PeerInfo>& findings)
    : names_(std::move(peers)) {
  for (std::string& name : names_) name.insert(0, kPeerPrefix);
  for (const PeerInfo& info : findings) peers_[info.name] = info;
}

void PeerFindings::Take(const PeerInfo& line) {
  if (!absl::c_linear_search(names_, line.name)) {
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
  for (const std::string& name : names_) {
    PeerInfo& info = peers_[name];
    info.name = name;
    if (!info.available) info.reason = absl::StrCat(kNotMeasured, std::string(why));
  }
}

std::vector<PeerInfo> PeerFindings::All() const {
  std::vector<PeerInfo> all;
  for (const std::string& name : names_) {
    const auto found = peers_.find(name);
    if (found != peers_.end()) all.push_back(found->second);
  }
  return all;
}

absl::StatusOr<PeerFindings> LoadPeerFindings(const std::string& dir,
                                              std::vector<std::string> peers) {
  const absl::StatusOr<std::string> text = ReadFile(absl::StrCat(dir, "/", kPeersFile));
  if (absl::IsNotFound(text.status())) return PeerFindings(std::move(peers));
  if (!text.ok()) return text.status();
  const absl::StatusOr<PeersFile> findings = FromText<PeersFile>(*text);
  if (!findings.ok()) {
    return absl::DataLossError(absl::StrCat(
        dir, "/", kPeersFile, ": ", std::string(findings.status().message()),
        ". It holds the checks of peers that are timed already; copy it again, or start anew."));
  }
  return PeerFindings(std::move(peers), findings->peers);
}

}  // namespace warpledger::ablations
