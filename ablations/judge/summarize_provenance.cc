// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ablations/base/json_text.h"
#include "ablations/judge/summarize_parts.h"
#include "kernels/common/nvml.h"

namespace warpledger::ablations {
namespace {

// Whether peers were to be timed on a shape. Which of them exist shows only when
// they run, so a shape that all of them refused counts for nothing.
bool PlansPeers(const RecordIndex& index, const ShapeInfo& shape) {
  const bool asked = std::any_of(index.run().arms.begin(), index.run().arms.end(),
                                 [](const Arm& arm) { return arm.role == kRolePeer; });
  if (!asked) return false;
  if (!index.record().peers) return true;
  for (const PeerInfo& info : *index.record().peers) {
    for (const PeerCheck& check : info.checks) {
      if (check.shape == shape.name && check.correct) return true;
    }
  }
  return false;
}

// How many visits a round has; 1 where arms take turns within a block. Which arms there are on a
// shape, and which did not break, shows in what they left.
int64_t PlannedVisits(const RecordIndex& index, const ShapeInfo& shape, bool peers) {
  if (!index.IsAlone()) return 1;
  std::set<std::string> arms;
  for (const Sample& sample : index.record().samples) {
    const bool is_peer = sample.arm.rfind(kPeerPrefix, 0) == 0;
    if (sample.shape == shape.name && is_peer == peers) arms.insert(sample.arm);
  }
  return std::max<int64_t>(std::ssize(arms), 1);
}

// What run.json plans against what is there: an interrupted run shows here.
void AddCompleteness(const RecordIndex& index, summary::Provenance* provenance) {
  std::set<int> processes;
  std::set<BlockKey> found;
  std::set<std::string> with_peers;
  for (const Sample& sample : index.record().samples) {
    const bool peer = sample.arm.rfind(kPeerPrefix, 0) == 0;
    if (peer) with_peers.insert(sample.shape);
    if (!peer) processes.insert(sample.process);
    found.insert(
        {sample.process, sample.shape, sample.block, peer, sample.IsVisit() ? sample.arm : ""});
  }
  int64_t planned[2] = {0, 0};  // ours, the peers'
  int64_t missing[2] = {0, 0};
  for (const ShapeInfo& shape : index.run().shapes) {
    for (const bool peers : {false, true}) {
      if (peers && !with_peers.contains(shape.name) && !PlansPeers(index, shape)) continue;
      const auto look = index.looks().find(shape.name);
      const bool stopped = look != index.looks().end() && look->second.stopped;
      const int processes = stopped ? look->second.processes : index.run().processes;
      const int blocks = index.run().blocks_per_process;
      const auto there = std::count_if(found.begin(), found.end(), [&](const BlockKey& key) {
        return key.shape == shape.name && key.peers == peers && key.process < processes &&
               key.block < blocks;
      });
      const int64_t all = int64_t{processes} * blocks * PlannedVisits(index, shape, peers);
      planned[peers] += all;
      missing[peers] += all - there;
    }
  }
  provenance->processes_found = std::ssize(processes);
  provenance->blocks_planned = planned[false];
  provenance->blocks_missing = missing[false];
  provenance->peer_blocks_planned = planned[true];
  provenance->peer_blocks_missing = missing[true];
}

}  // namespace

std::vector<summary::Look> LooksOf(const RecordIndex& index) {
  std::vector<summary::Look> looks;
  for (const ShapeInfo& shape : index.run().shapes) {
    const StoppingState& state = index.looks().at(shape.name);
    looks.push_back({.shape = shape.name,
                     .look = state.look + 1,
                     .processes = state.processes,
                     .alpha_share = state.alpha_share,
                     .worst_half_width = SixDigits(state.worst_half_width),
                     .stopped_early = state.stopped});
  }
  return looks;
}

std::vector<summary::Peer> PeersOf(const RecordIndex& index) {
  std::vector<PeerInfo> infos = index.record().peers.value_or(std::vector<PeerInfo>{});
  std::set<std::string> named;
  for (const PeerInfo& info : infos) named.insert(info.name);
  for (const auto& [key, timings] : index.timings()) {
    const std::string& arm = key.first;
    if (arm.rfind(kPeerPrefix, 0) != 0 || !named.insert(arm).second) continue;
    PeerInfo info;
    info.name = arm;
    info.reason = "not described in peers.json";
    infos.push_back(std::move(info));
  }
  std::vector<summary::Peer> peers;
  for (const PeerInfo& info : infos) {
    for (const ShapeInfo& shape : index.run().shapes) {
      summary::Peer& peer = peers.emplace_back();
      static_cast<summary::Times&>(peer) = index.TimesOf(info.name, shape.name);
      peer.name = info.name;
      peer.version = info.version;
      peer.shape = shape.name;
      peer.kv_bits = index.subject().PeerKvBits(info.name);
      peer.available = !index.Timings(info.name, shape.name).empty();
      for (const PeerCheck& check : info.checks) {
        if (check.shape == shape.name) peer.correct = check.correct && peer.correct.value_or(true);
      }
      peer.reason = peer.available && info.available ? "" : info.reason;
      peer.alone = index.AloneOf(info.name, shape.name);
      if (!peer.available && peer.reason.empty()) {
        peer.reason = index.WhyStarved({info.name}, shape.name);
      }
      if (!peer.available && peer.reason.empty()) peer.reason = "not timed on this shape";
    }
  }
  return peers;
}

summary::Provenance ProvenanceOf(const RecordIndex& index) {
  summary::Provenance provenance;
  static_cast<RunInfo&>(provenance) = index.run();
  AddCompleteness(index, &provenance);
  std::vector<double> sm_mhz;
  std::vector<double> temp_c;
  std::vector<double> power_w;
  std::vector<double> energy_over_power;
  std::vector<double> idle;
  int starved = 0;
  int throttled = 0;
  int unknown_throttle = 0;
  for (const Sample& sample : index.record().samples) {
    if (sample.sm_mhz) sm_mhz.push_back(*sample.sm_mhz);
    if (sample.temp_c) temp_c.push_back(*sample.temp_c);
    if (sample.power_w) power_w.push_back(*sample.power_w);
    if (sample.idle_share) idle.push_back(*sample.idle_share);
    if (sample.IsStarved()) ++starved;
    if (!sample.IsStarved() && sample.Watts() && sample.power_w.value_or(0) > 0) {
      energy_over_power.push_back(*sample.Watts() / *sample.power_w);
    }
    if (!sample.throttle) ++unknown_throttle;
    if (sample.throttle && IsThrottled(*sample.throttle)) ++throttled;
  }
  provenance.n_samples = std::ssize(index.record().samples);
  if (unknown_throttle < provenance.n_samples) provenance.throttled_samples = throttled;
  provenance.unknown_throttle_samples = unknown_throttle;
  provenance.sm_mhz_p50 = MedianOf(std::move(sm_mhz));
  provenance.temp_c_p50 = MedianOf(std::move(temp_c));
  provenance.power_w_p50 = MedianOf(std::move(power_w));
  if (!idle.empty()) {
    provenance.starved_visits = starved;
    provenance.idle_share_max = SixDigits(*std::max_element(idle.begin(), idle.end()));
    provenance.idle_share_p50 = MedianOf(std::move(idle));
  }
  provenance.energy_over_power = MedianOf(std::move(energy_over_power));
  return provenance;
}

}  // namespace warpledger::ablations
