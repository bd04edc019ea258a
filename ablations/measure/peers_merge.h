// SPDX-License-Identifier: Apache-2.0
// What is known of the peers, merged from the lines of peers.py.
//
// Contract: a run starts peers.py once per process, and a run that was stopped
// starts it again later. Each line speaks of one backend on one shape; this
// merges them into one entry per backend, in the order of the names, and starts
// from what an earlier call of the run left in peers.json, so that no check of
// a timed peer is lost. A line about PyTorch itself (`peer:torch`, when it can't
// be imported) gives its reason to every backend.
//
//   PeerFindings findings(subject.Peers());
//   findings.Take(line);
//   RETURN_IF_ERROR(WriteFileAtomically(path, DumpFile(ToJson(PeersFile{findings.All()}))));

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ablations/record/record.h"
#include "absl/status/statusor.h"

namespace warpledger::ablations {

class PeerFindings {
 public:
  PeerFindings() = default;
  // `peers`: the names that are asked for (Subject::Peers()); `findings`: what is known of them.
  explicit PeerFindings(std::vector<std::string> peers, const std::vector<PeerInfo>& findings = {});

  // Checks are appended, `available` is true where any line says so, reasons are
  // joined, each once.
  void Take(const PeerInfo& line);
  // The backends could not even be asked. What they said before stays.
  void NotMeasured(std::string_view why);

  bool empty() const { return peers_.empty(); }
  std::vector<PeerInfo> All() const;

 private:
  std::vector<std::string> names_;         // "peer:cudnn", in order
  std::map<std::string, PeerInfo> peers_;  // by name
};

// The peers.json of a record that is resumed; nothing where there is none.
// DataLoss when it is damaged.
absl::StatusOr<PeerFindings> LoadPeerFindings(const std::string& dir,
                                              std::vector<std::string> peers);

}  // namespace warpledger::ablations
