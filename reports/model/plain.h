// SPDX-License-Identifier: Apache-2.0
// What a record says, made safe to show: every text of a described struct
// (ablations/base/json_fields.h) as PlainText() gives it. A renderer calls it once, on what it was
// given, so that no line of a page has to think of it. A problem gets the name that pages have for
// it (sdpa::ShownName()).
//
//   const summary::ProfileSummary summary = Plain(read);
//
// Numbers stay. So do the parameters of problems and definitions of subjects, which are checked
// where a record is read.

#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include "ablations/summary/summary.h"
#include "kernels/sdpa/problem/shapes.h"
#include "reports/model/text.h"

namespace warpledger::report {

class PlainFields {
 public:
  template <typename T, typename... Rules>
  void operator()(const char*, T& value, const Rules&...) {
    Make(value);
  }

  template <typename T>
  void Make(T& value) {
    using namespace ablations::json_fields;
    if constexpr (std::is_same_v<T, std::string>) {
      value = sdpa::ShownName(PlainText(value));
    } else if constexpr (std::is_same_v<T, ablations::ShapeInfo>) {
      Make(value.name);
    } else if constexpr (std::is_same_v<T, summary::Opcodes>) {
      for (auto& opcode : value.list) Make(opcode.name);
    } else if constexpr (kIsOptional<T>) {
      if (value) Make(*value);
    } else if constexpr (Map<T>) {
      T plain;
      for (auto& [name, element] : value) {
        Make(element);
        std::string key = name;
        Make(key);
        plain.insert_or_assign(std::move(key), std::move(element));
      }
      value = std::move(plain);
    } else if constexpr (List<T>) {
      if constexpr (!std::is_arithmetic_v<typename T::value_type>) {
        for (auto& element : value) Make(element);
      }
    } else if constexpr (ablations::Described<T>) {
      value.Visit(*this);
    }
  }
};

template <ablations::Described T>
T Plain(T value) {
  PlainFields().Make(value);
  return value;
}

}  // namespace warpledger::report
