// SPDX-License-Identifier: Apache-2.0
// Finding an element of a list, and adding one that it lacks. No errors.
//
//   const Cell* cell = FindIn(cells, [&](const Cell& each) { return each.variant == name; });
//   AddOnce(peer.name, &names);

#pragma once

#include <algorithm>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

namespace warpledger::report {

// The first element for which `wanted` is true; null where there is none.
template <typename List, typename Predicate>
constexpr auto* FindIn(List& list, Predicate wanted) {
  const auto found = std::find_if(std::begin(list), std::end(list), wanted);
  return found == std::end(list) ? nullptr : &*found;
}

// Adds `value` at the end, unless the list has it.
template <typename T>
void AddOnce(std::type_identity_t<T> value, std::vector<T>* list) {
  if (std::find(list->begin(), list->end(), value) == list->end()) {
    list->push_back(std::move(value));
  }
}

}  // namespace warpledger::report
