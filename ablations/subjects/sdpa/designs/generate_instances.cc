// SPDX-License-Identifier: Apache-2.0
// Writes one CUDA source file per distinct configuration of the designs, the table that lists
// them (instances.cc), what embeds their code (instance_code.cc) and instances.json. CMake compiles
// and runs this program while it configures; it uses the standard library alone.
//
//   generate_instances [--only=DESIGN,DESIGN,…] <directory> [design]...
//
// The designs are AllDesigns() and those of one's own that are named
// (own_designs.h); another name is refused. `--only` leaves out the kernels that none of its
// designs names; a_step_per_family keeps the first step of each kernel family and its base, library
// all of the library's kernels. What only the library has, packed sequences' kernels and some that
// start what is behind them early, is compiled for <directory>/library alone. Prints a line per
// source file: the set that it is compiled with, a space and its path. All of a set is compiled for
// the same architectures: a set is a family, those of it that need a newer architecture (mma90),
// those of it that the cumulative ladders `ladder` and `mma` name (smem_ladder, mma_ladder), which
// are compiled for more GPUs than the rest, or the library's for GPUs without wgmma (mma_strided).
// A file whose contents would not change is left alone, so that nothing is recompiled.
// <directory>/library gets the same two files for the library's kernels (kernels/sdpa/library), and
// code.txt, which names what they embed.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "ablations/subjects/sdpa/designs/designs.h"
#include "ablations/subjects/sdpa/designs/own_designs.h"
#include "kernels/sdpa/library/kernels.h"
#include "kernels/sdpa/registry/config.h"
#include "kernels/sdpa/registry/registry.h"
#include "kernels/sdpa/registry/variant.h"
#include "kernels/sdpa/rules/rules.h"

namespace {

using warpledger::sdpa::BuiltForLibrary;
using warpledger::sdpa::ClusterForm;
using warpledger::sdpa::Config;
using warpledger::sdpa::Dtype;
using warpledger::sdpa::Family;
using warpledger::sdpa::FamilyName;
using warpledger::sdpa::FamilyOf;
using warpledger::sdpa::HasClusterForm;
using warpledger::sdpa::HasStridedForm;
using warpledger::sdpa::InstanceName;
using warpledger::sdpa::InstanceSymbol;
using warpledger::sdpa::kLibraryKernels;
using warpledger::sdpa::kMmaKernels;
using warpledger::sdpa::LibraryKernel;
using warpledger::sdpa::Mask;
using warpledger::sdpa::StridedForm;

// What `--only` takes beside designs.
constexpr std::string_view kStepPerFamily = "a_step_per_family";
constexpr std::string_view kLibrary = "library";

// `--only`: which kernels are wanted.
class Selection {
 public:
  Selection(const std::string& list, const std::vector<warpledger::ablations::Design>& designs) {
    std::stringstream names(list);
    for (std::string name; std::getline(names, name, ',');) names_.push_back(name);
    if (!Names(kStepPerFamily)) return;
    std::vector<Family> families;
    for (const auto& design : designs) {
      for (const auto& arm : design.arms) {
        const auto base = std::find_if(design.arms.begin(), design.arms.end(),
                                       [&](const auto& other) { return other.name == arm.base; });
        const Family family = FamilyOf(arm.config);
        if (arm.role != "step" || base == design.arms.end() || base->config == arm.config ||
            FamilyOf(base->config) != family || Contains(families, family)) {
          continue;
        }
        families.push_back(family);
        steps_.insert(steps_.end(), {base->config, arm.config});
      }
    }
  }

  // A name that no design has; empty: none.
  std::string Unknown(const std::vector<warpledger::ablations::Design>& designs) const {
    for (const std::string& name : names_) {
      const auto is_it = [&](const auto& design) { return design.name == name; };
      if (name == kStepPerFamily || name == kLibrary) continue;
      if (std::none_of(designs.begin(), designs.end(), is_it)) return name;
    }
    return "";
  }

  // Kernels that only the library has.
  bool TakesLibrarysOwn() const { return names_.empty() || Names(kLibrary); }

  bool Takes(const warpledger::ablations::Design& design, const Config& config) const {
    return names_.empty() || Names(design.name) || Contains(steps_, config) ||
           (Names(kLibrary) && design.span == warpledger::ablations::Span::kWholeKernels &&
            IsOfLibrary(config));
  }

 private:
  template <typename T>
  static bool Contains(const std::vector<T>& all, const T& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  }
  // The library's designs hold controls too.
  static bool IsOfLibrary(const Config& config) {
    return std::any_of(std::begin(kLibraryKernels), std::end(kLibraryKernels),
                       [&](const auto& kernel) { return BuiltForLibrary(kernel) == config; });
  }
  bool Names(std::string_view name) const { return Contains(names_, std::string(name)); }

  std::vector<std::string> names_;
  std::vector<Config> steps_;
};

bool WriteIfChanged(const std::filesystem::path& path, const std::string& contents) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream old;
  old << in.rdbuf();
  if (in && old.str() == contents) return true;
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << contents;
  return static_cast<bool>(out);
}

std::string Initialiser(const Config& config) {
  std::string text = "{";
  for (const auto& row : warpledger::sdpa::kToggles) {
    if (config.*row.field == 0) continue;
    text += "." + std::string(row.id) + " = " + std::to_string(config.*row.field) + ", ";
  }
  text += ".head_dim = " + std::to_string(config.head_dim) + ", .mask = Mask::";
  text += config.mask == Mask::kCausal ? "kCausal"
          : config.mask == Mask::kFull ? "kFull"
                                       : "kAtRunTime";
  if (config.dtype == Dtype::kBf16) text += ", .dtype = Dtype::kBf16";
  if (config.projected) text += ", .projected = true";
  if (config.varlen) text += ", .varlen = true";
  if (config.scale_strides) text += ", .scale_strides = true";
  if (config.strided) text += ", .strided = true";
  return text + "}";
}

std::string InQuotes(const std::string& text) { return '"' + text + '"'; }

constexpr std::string_view kGenerated =
    "// Generated by ablations/subjects/sdpa/designs/generate_instances.cc.\n";

// What embeds the instances' code, which lies in `code`: in the section in which cuobjdump and the
// debugger look for device code.
std::string Embedding(const std::vector<Config>& configs, const std::filesystem::path& code) {
  std::string text(kGenerated);
  text +=
      "#define WARPLEDGER_EMBED(symbol, file)                            \\\n"
      "  asm(\".pushsection .nv_fatbin,\\\"a\\\",@progbits\\n.balign 16\\n\"  \\\n"
      "      \".globl \" symbol \"_code\\n\" symbol \"_code:\\n\"             \\\n"
      "      \".incbin \\\"\" file \"\\\"\\n.popsection\")\n\n";
  for (const Config& config : configs) {
    const std::string symbol = InstanceSymbol(config);
    text += "WARPLEDGER_EMBED(" + InQuotes(symbol) + ", " +
            InQuotes((code / (symbol + ".fatbin")).string()) + ");\n";
  }
  return text;
}

// The instances as an array kInstances.
std::string Table(const std::vector<Config>& configs) {
  std::string declarations;
  std::string codes;
  std::string entries;
  for (const Config& config : configs) {
    const std::string symbol = InstanceSymbol(config);
    std::string launch(FamilyName(FamilyOf(config)));
    launch[0] = static_cast<char>(launch[0] - 'a' + 'A');
    entries += "    {" + Initialiser(config) + ", &codes[" +
               std::to_string(std::count(codes.begin(), codes.end(), '\n')) + "], &Launch" +
               launch + "},\n";
    declarations += "extern \"C\" const unsigned char " + symbol + "_code[];\n";
    codes += "    {" + InQuotes(symbol) + ", " + symbol + "_code},\n";
  }
  return declarations + "\nnamespace warpledger::sdpa {\nnamespace {\n\n" +
         "KernelCode codes[] = {\n" + codes + "};\n\nconst KernelInstance kInstances[] = {\n" +
         entries + "};\n\n}  // namespace\n\n";
}

// All that the library holds: its kernels' forms, under both masks.
std::vector<Config> OfLibrary() {
  std::vector<Config> configs;
  const auto add = [&configs](const LibraryKernel& kernel, const Config& form) {
    for (const bool causal : {false, true}) {
      const Config config =
          warpledger::sdpa::Specialise(form, kernel.head_dim, causal, kernel.dtype);
      if (std::find(configs.begin(), configs.end(), config) == configs.end()) {
        configs.push_back(config);
      }
    }
  };
  for (const LibraryKernel& kernel : kLibraryKernels) {
    add(kernel, BuiltForLibrary(kernel));
    if (HasClusterForm(kernel)) add(kernel, ClusterForm(kernel));
    if (HasStridedForm(kernel)) add(kernel, StridedForm(kernel));
  }
  for (const LibraryKernel& kernel : kMmaKernels) add(kernel, BuiltForLibrary(kernel));
  return configs;
}

// Whether GPUs without wgmma take it.
bool IsForOtherGpus(const Config& config) {
  return std::any_of(std::begin(kMmaKernels), std::end(kMmaKernels), [&](const auto& kernel) {
    return config == warpledger::sdpa::Specialise(BuiltForLibrary(kernel), kernel.head_dim, false,
                                                  kernel.dtype);
  });
}

// The library's files, of those of its kernels that the build has.
bool WriteLibrary(const std::vector<Config>& built, const std::filesystem::path& code) {
  std::vector<Config> configs;
  std::string files;
  for (const Config& config : OfLibrary()) {
    if (std::find(built.begin(), built.end(), config) == built.end()) continue;
    configs.push_back(config);
    files += (code / (InstanceSymbol(config) + ".fatbin")).string() + "\n";
  }
  const std::filesystem::path directory = code / "library";
  std::filesystem::create_directories(directory);
  return WriteIfChanged(directory / "code.txt", files) &&
         WriteIfChanged(directory / "instance_code.cc", Embedding(configs, code)) &&
         WriteIfChanged(
             directory / "instances.cc",
             std::string(kGenerated) + "#include \"kernels/sdpa/library/library_instances.h\"\n\n" +
                 Table(configs) +
                 "std::span<const KernelInstance> LibraryInstances() { return kInstances; }\n\n"
                 "}  // namespace warpledger::sdpa\n");
}

}  // namespace

int main(int argc, char** argv) {
  constexpr std::string_view kOnly = "--only=";
  const std::vector<std::string> given(argv + 1, argv + argc);
  const bool selects = !given.empty() && given[0].starts_with(kOnly);
  const std::vector<std::string> arguments(given.begin() + (selects ? 1 : 0), given.end());
  if (arguments.empty()) {
    std::fprintf(stderr, "usage: generate_instances [--only=DESIGN,...] <directory> [design]...\n");
    return 2;
  }
  std::vector<warpledger::ablations::Design> designs = warpledger::ablations::AllDesigns();
  for (size_t i = 1; i < arguments.size(); ++i) {
    warpledger::ablations::OwnDesign own = warpledger::ablations::ParseOwnDesign(arguments[i]);
    if (!own.ok()) {
      std::cerr << "WARPLEDGER_EXTRA_DESIGNS: " << own.error << "\n";
      return 1;
    }
    designs.push_back(std::move(own.design));
  }
  const Selection selection(selects ? given[0].substr(kOnly.size()) : "", designs);
  if (const std::string unknown = selection.Unknown(designs); !unknown.empty()) {
    std::cerr << "WARPLEDGER_DESIGNS: there is no design '" << unknown << "'\n";
    return 1;
  }
  const std::filesystem::path directory = arguments[0];
  std::filesystem::create_directories(directory);

  std::vector<Config> configs;
  std::vector<Config> of_ladders;
  for (const auto& design : designs) {
    for (const auto& arm : design.arms) {
      if (const auto reason = warpledger::sdpa::WhyInvalid(arm.config)) {
        std::cerr << "design " << design.name << ", arm " << arm.name << ": toggle "
                  << reason.toggle << " is illegal there (missing: " << reason.missing << ")\n";
        return 1;
      }
      if (!selection.Takes(design, arm.config)) continue;
      for (const Config& config : warpledger::ablations::Specialisations(design, arm)) {
        if (const auto reason = warpledger::sdpa::WhyInvalid(config)) {
          std::cerr << "design " << design.name << ", arm " << arm.name << ": no " << reason.toggle
                    << ": " << reason.why << "\n";
          return 1;
        }
        if (std::find(configs.begin(), configs.end(), config) == configs.end()) {
          configs.push_back(config);
        }
        // hopper and hopper_small run on sm_90 alone.
        if (design.name == "ladder" || design.name == "mma") of_ladders.push_back(config);
      }
    }
  }

  std::vector<Config> compiled = configs;
  for (const Config& config : OfLibrary()) {
    if (!selection.TakesLibrarysOwn()) break;
    if (std::find(compiled.begin(), compiled.end(), config) != compiled.end()) continue;
    compiled.push_back(config);
    if (const auto reason = warpledger::sdpa::WhyInvalid(config)) {
      std::cerr << "library, " << InstanceName(config) << ": no " << reason.toggle << ": "
                << reason.why << "\n";
      return 1;
    }
  }

  std::string json = "{\"instances\":[";
  bool ok = true;
  for (size_t i = 0; i < compiled.size(); ++i) {
    const Config& config = compiled[i];
    const std::string symbol = InstanceSymbol(config);
    const std::filesystem::path source = directory / (symbol + ".cu");
    const std::string family(FamilyName(FamilyOf(config)));
    ok = ok &&
         WriteIfChanged(source, std::string(kGenerated) + "#include \"kernels/sdpa/" + family +
                                    "/instance.cuh\"\n\n"
                                    "namespace warpledger::sdpa {\n" +
                                    "WARPLEDGER_INSTANCE(" + symbol + ", " + Initialiser(config) +
                                    ")\n"
                                    "}  // namespace warpledger::sdpa\n");
    const int least = warpledger::sdpa::MinArch(config);
    std::string set = family;
    if (IsForOtherGpus(config)) {
      set += "_strided";
    } else if (config.strided) {
      set += "90";
    } else if (FamilyOf(config) == Family::kMma && least > 0) {
      set += std::to_string(least);
    } else if (std::find(of_ladders.begin(), of_ladders.end(), config) != of_ladders.end()) {
      set += "_ladder";
    }
    std::cout << set << " " << source.string() << "\n";
    if (i >= configs.size()) continue;  // no design's
    if (json.back() == '}') json += ",";
    json += "\n{\"variant\":\"" + InstanceName(config) + "\",\"set\":\"" + set +
            "\",\"symbol\":\"" + symbol + "\",\"source\":\"" + source.string() + "\"}";
  }
  json += "\n]}\n";
  ok = ok && WriteIfChanged(directory / "instances.json", json) &&
       WriteIfChanged(directory / "instance_code.cc", Embedding(configs, directory)) &&
       WriteIfChanged(directory / "instances.cc",
                      std::string(kGenerated) +
                          "#include <vector>\n\n"
                          "#include \"kernels/sdpa/launch/launch.h\"\n\n" +
                          Table(configs) +
                          "absl::Span<const KernelInstance* const> AllInstances() {\n"
                          "  static const auto* const all = [] {\n"
                          "    auto* pointers = new std::vector<const KernelInstance*>;\n"
                          "    for (const KernelInstance& instance : kInstances) {\n"
                          "      pointers->push_back(&instance);\n"
                          "    }\n"
                          "    return pointers;\n"
                          "  }();\n"
                          "  return *all;\n"
                          "}\n\n"
                          "}  // namespace warpledger::sdpa\n") &&
       WriteLibrary(compiled, directory);
  if (!ok) std::cerr << "cannot write to " << directory << "\n";
  return ok ? 0 : 1;
}
