// SPDX-License-Identifier: Apache-2.0
// What is wrong with something that was written, whatever it was made of: "" where nothing is.
//
// Contract: pure functions of the text; no errors. They know what this project's renderers write,
// and no more of Markdown and XML than that.

#pragma once

#include <string>
#include <string_view>

namespace warpledger::fuzz {

// No control character, no tag but those that our own pages have, as many cells in each row of a
// table as in its first.
std::string WhyNoPage(std::string_view markdown);

// No control character but the end of a line and the tabulator: a terminal obeys nothing.
std::string WhyNoTerminalText(std::string_view text);

// Each element ends in the order of its beginning, attributes are quoted and known once, entities
// are XML's own, and there is one root.
std::string WhyNoXml(std::string_view xml);

}  // namespace warpledger::fuzz
