// SPDX-License-Identifier: Apache-2.0
#include "ablations/cli/command.h"

int main(int argc, char** argv) { return warpledger::cli::Main(argc, argv); }
