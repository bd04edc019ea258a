// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/device_facts.h"

#include <cctype>

namespace warpledger {

std::string DeviceSlug(const std::string& name) {
  std::string text = name;
  for (const char* vendor : {"NVIDIA ", "Tesla ", "GeForce "}) {
    if (text.starts_with(vendor)) text = text.substr(std::string(vendor).size());
  }
  std::string slug;
  for (const unsigned char c : text) {
    if (std::isalnum(c)) {
      slug += static_cast<char>(std::tolower(c));
    } else if (!slug.empty() && slug.back() != '_') {
      slug += '_';
    }
  }
  while (!slug.empty() && slug.back() == '_') slug.pop_back();
  return slug.empty() ? "unknown" : slug;
}

}  // namespace warpledger
