// SPDX-License-Identifier: Apache-2.0
// Printed names of configurations.
//
// A configuration prints as the ids of its toggles that are on, in registry
// order, joined by '+': "kv_tiling+warp_shuffle". A level other than the first
// on-level is spelled out ("cp_async_stages=3"). All off prints as the
// baseline's id. An instance's name adds what the problem fixed, where that is not
// head_dim 64, fp16 and no compiled causal mask: "wgmma@d128_bf16_causal". Standard library
// only: the instance generator, which runs while CMake configures, uses it too.

#ifndef WARPLEDGER_KERNELS_SDPA_REGISTRY_VARIANT_H_
#define WARPLEDGER_KERNELS_SDPA_REGISTRY_VARIANT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/sdpa/dtype/dtype_name.h"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/registry/registry.h"

namespace warpledger::sdpa {

inline std::string ConfigName(const Config& config) {
  std::string name;
  for (const ToggleRow& row : kToggles) {
    const int level = config.*row.field;
    if (level == row.levels.values[0]) continue;
    if (!name.empty()) name += '+';
    name += row.id;
    if (level != row.levels.values[1]) {
      name += '=';
      name += std::to_string(level);
    }
  }
  return name.empty() ? std::string(kBaseline.id) : name;
}

// The inverse of ConfigName. Nothing for a name with a toggle or a level that the registry doesn't
// have, as in a record of another version. Whether the combination is legal is WhyInvalid's.
inline std::optional<Config> ConfigFromName(std::string_view name) {
  Config config;
  if (name == kBaseline.id) return config;
  while (true) {
    const std::size_t plus = name.find('+');
    const std::string_view part = name.substr(0, plus);
    const std::size_t equals = part.find('=');
    const std::string_view id = part.substr(0, equals);
    const ToggleRow* found = nullptr;
    for (const ToggleRow& row : kToggles) {
      if (row.id == id) found = &row;
    }
    if (found == nullptr) return std::nullopt;
    int level = found->levels.values[1];
    if (equals != std::string_view::npos) {
      const std::string digits(part.substr(equals + 1));
      char* end = nullptr;
      level = static_cast<int>(std::strtol(digits.c_str(), &end, 10));
      if (digits.empty() || *end != '\0' || !found->levels.Contains(level)) return std::nullopt;
      // ConfigName leaves these out.
      if (level == found->levels.values[0] || level == found->levels.values[1]) return std::nullopt;
    }
    config.*found->field = level;
    if (plus == std::string_view::npos) return config;
    name.remove_prefix(plus + 1);
  }
}

// A printed configuration without what reaches no machine code under the mask.
inline std::string CompiledName(const std::string& name, Mask mask) {
  std::optional<Config> config = ConfigFromName(name);
  if (!config) return name;
  config->mask = mask;
  return ConfigName(CompiledPart(*config));
}

// "" where it says nothing, "@d128", "@causal", "@d128_bf16_causal", "@projected", "@varlen",
// "@d128_scale_strides", "@strided".
inline std::string InstanceSuffix(int head_dim, bool compiled_causal, Dtype dtype = Dtype::kFp16,
                                  bool projected = false, bool varlen = false,
                                  bool scale_strides = false, bool strided = false) {
  std::string suffix;
  const auto add = [&suffix](std::string_view part) {
    suffix.append(suffix.empty() ? "@" : "_").append(part);
  };
  if (head_dim != Config{}.head_dim) add(std::string("d").append(std::to_string(head_dim)));
  if (dtype != Dtype::kFp16) add(DtypeName(dtype));
  if (compiled_causal) add("causal");
  if (projected) add("projected");
  if (varlen) add("varlen");
  if (scale_strides) add("scale_strides");
  if (strided) add("strided");
  return suffix;
}

// What the instance may be called that a printed configuration runs on for a problem; the first
// that exists is it. A family that is compiled once for both masks has the second alone.
inline std::array<std::string, 2> InstanceNames(const std::string& printed, int head_dim,
                                                bool causal, Dtype dtype, bool projected) {
  const std::string compiled = CompiledName(printed, causal ? Mask::kCausal : Mask::kFull);
  return {compiled + InstanceSuffix(head_dim, causal, dtype, projected),
          compiled + InstanceSuffix(head_dim, false, dtype, projected)};
}

inline std::string InstanceName(const Config& config) {
  return ConfigName(config) + InstanceSuffix(config.head_dim, config.mask == Mask::kCausal,
                                             config.dtype, config.projected, config.varlen,
                                             config.scale_strides, config.strided);
}

// File systems allow 255 characters, and the build appends some.
inline constexpr std::size_t kMaxSymbol = 160;

// A C++ identifier and file name for the instance. A long one ends in a hash of
// what was cut off.
inline std::string InstanceSymbol(const Config& config) {
  std::string symbol = "sdpa_";
  for (const char c : InstanceName(config)) {
    if (c == '+') {
      symbol += "__";
    } else if (c == '=' || c == '@') {
      symbol += "_";
    } else {
      symbol += c;
    }
  }
  if (symbol.size() <= kMaxSymbol) return symbol;
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char c : symbol) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  symbol.resize(kMaxSymbol - 17);
  symbol += '_';
  for (int shift = 60; shift >= 0; shift -= 4) symbol += "0123456789abcdef"[hash >> shift & 15];
  return symbol;
}

}  // namespace warpledger::sdpa

#endif  // WARPLEDGER_KERNELS_SDPA_REGISTRY_VARIANT_H_
