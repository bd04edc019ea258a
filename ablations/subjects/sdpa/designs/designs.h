// SPDX-License-Identifier: Apache-2.0
// The experimental designs: which arms are timed together and what each one is
// compared with. All of them derive from the registry.
//
//   ladder         each toggle on top of all before it
//   one_on         each toggle alone, with the toggles that it needs
//   leave_one_out  everything on, without one toggle and what needs it
//   factorial      every legal combination of some toggles on a fixed background
//   hopper         the end of the mma family's ladder with Q in shared memory, then each toggle
//                  of the wgmma family on top of all before it
//   hopper_small   each toggle of the small-problem kernel on top of all before it
//   hopper_plus, hopper_tiles, hopper_d64, hopper_d128, hopper_d256, hopper_bf16,
//   hopper_fp8     designs_hopper_plus.h
//   hopper_decode, hopper_gqa  designs_hopper.h
//   fastest_d64, fastest_d128, fastest_d256, fastest_d128_bf16,
//   fastest_fp8_d64, fastest_fp8_d128, fastest_fp8_d256,
//   forms_fp8_d64, forms_fp8_d128, forms_fp8_d256,
//   output_fp8_d64, output_fp8_d128, output_fp8_d256,
//   without_d64, without_d128, without_d256  designs_fastest.h
//   stage2_plus, wmma_d128  designs_wmma.h
//
// Standard library only: the instance generator compiles a kernel for every
// configuration that AllDesigns() names.

#pragma once

#include <utility>
#include <vector>

#include "ablations/subjects/sdpa/designs/design.h"               // IWYU pragma: export
#include "ablations/subjects/sdpa/designs/designs_fastest.h"      // IWYU pragma: export
#include "ablations/subjects/sdpa/designs/designs_fusion.h"       // IWYU pragma: export
#include "ablations/subjects/sdpa/designs/designs_hopper.h"       // IWYU pragma: export
#include "ablations/subjects/sdpa/designs/designs_hopper_plus.h"  // IWYU pragma: export
#include "ablations/subjects/sdpa/designs/designs_mma.h"          // IWYU pragma: export
#include "ablations/subjects/sdpa/designs/designs_wmma.h"         // IWYU pragma: export

namespace warpledger::ablations {

// The designs whose instances every build holds.
inline std::vector<Design> AllDesigns() {
  std::vector<Design> designs = {LadderDesign(),           OneOnDesign(),
                                 LeaveOneOutDesign(),      DeclaredFactorialDesign(),
                                 HopperDesign(),           HopperLeaveOneOutDesign(),
                                 HopperSmallDesign(),      HopperPlusDesign(),
                                 HopperTilesDesign(),      HopperLengthsDesign(64),
                                 HopperLengthsDesign(128), HopperLengthsDesign(256),
                                 HopperBf16Design(),       HopperFp8Design(),
                                 HopperDecodeDesign(),     HopperGqaDesign(),
                                 Stage2PlusDesign(),       WmmaD128Design()};
  for (Design& design : MmaDesigns()) designs.push_back(std::move(design));
  designs.push_back(FusionDesign());
  for (Design& design : LibraryDesigns()) designs.push_back(std::move(design));
  for (Design& design : FastestDesigns()) designs.push_back(std::move(design));
  for (Design& design : WithoutDesigns()) designs.push_back(std::move(design));
  return designs;
}

}  // namespace warpledger::ablations
