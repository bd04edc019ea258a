// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/nvml.h"

#include <dlfcn.h>

#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "tests/status_matchers.h"

namespace warpledger {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A library with one GPU in it. Functions that C can call leave only globals
// to hold its state.
struct FakeNvml {
  int init_result = 0;
  int open_sessions = 0;
  int power_result = 0;
  int temperature_result = 0;
  int ecc_result = 0;
  int energy_result = 0;
  unsigned long long reasons = 0;
  std::string opened_by;
} fake;
int fake_gpu;

constexpr char kUuid[] = "GPU-00000000-1111-2222-3333-444444444444";

int Init() {
  if (fake.init_result == 0) ++fake.open_sessions;
  return fake.init_result;
}
int Shutdown() {
  --fake.open_sessions;
  return 0;
}
const char* ErrorString(int code) { return code == 9 ? "Driver Not Loaded" : "Some Error"; }
int CopyText(const char* text, char* out, unsigned size) {
  std::strncpy(out, text, size);
  return 0;
}
int DriverVersion(char* out, unsigned size) { return CopyText("580.65.06", out, size); }
int ByUuid(const char* id, void** handle) {
  if (std::strcmp(id, kUuid) != 0) return 6;
  fake.opened_by = "uuid";
  *handle = &fake_gpu;
  return 0;
}
int ByPci(const char*, void** handle) {
  fake.opened_by = "pci";
  *handle = &fake_gpu;
  return 0;
}
int Name(void*, char* out, unsigned size) { return CopyText("NVIDIA Fake", out, size); }
int Uuid(void*, char* out, unsigned size) { return CopyText(kUuid, out, size); }
int Clock(void* handle, int type, unsigned* mhz) {
  if (handle != &fake_gpu) return 2;
  *mhz = type == 1 ? 1755 : 2619;
  return 0;
}
int MaxClock(void*, int type, unsigned* mhz) {
  *mhz = type == 1 ? 1980 : 3201;
  return 0;
}
int Temperature(void*, int, unsigned* celsius) {
  *celsius = 41;
  return fake.temperature_result;
}
int Power(void*, unsigned* milliwatts) {
  *milliwatts = 310500;
  return fake.power_result;
}
int PowerLimit(void*, unsigned* milliwatts) {
  *milliwatts = 700000;
  return 0;
}
int Reasons(void*, unsigned long long* mask) {
  *mask = fake.reasons;
  return 0;
}
int Ecc(void*, int* current, int* pending) {
  *current = 1;
  *pending = 0;
  return fake.ecc_result;
}

int Energy(void*, unsigned long long* millijoules) {
  *millijoules = 4'711'250;
  return fake.energy_result;
}

std::map<std::string, void*> Symbols() {
  return {{"nvmlInit_v2", reinterpret_cast<void*>(&Init)},
          {"nvmlShutdown", reinterpret_cast<void*>(&Shutdown)},
          {"nvmlErrorString", reinterpret_cast<void*>(&ErrorString)},
          {"nvmlSystemGetDriverVersion", reinterpret_cast<void*>(&DriverVersion)},
          {"nvmlDeviceGetHandleByUUID", reinterpret_cast<void*>(&ByUuid)},
          {"nvmlDeviceGetHandleByPciBusId_v2", reinterpret_cast<void*>(&ByPci)},
          {"nvmlDeviceGetName", reinterpret_cast<void*>(&Name)},
          {"nvmlDeviceGetUUID", reinterpret_cast<void*>(&Uuid)},
          {"nvmlDeviceGetClockInfo", reinterpret_cast<void*>(&Clock)},
          {"nvmlDeviceGetMaxClockInfo", reinterpret_cast<void*>(&MaxClock)},
          {"nvmlDeviceGetTemperature", reinterpret_cast<void*>(&Temperature)},
          {"nvmlDeviceGetPowerUsage", reinterpret_cast<void*>(&Power)},
          {"nvmlDeviceGetEnforcedPowerLimit", reinterpret_cast<void*>(&PowerLimit)},
          {"nvmlDeviceGetCurrentClocksEventReasons", reinterpret_cast<void*>(&Reasons)},
          {"nvmlDeviceGetEccMode", reinterpret_cast<void*>(&Ecc)},
          {"nvmlDeviceGetTotalEnergyConsumption", reinterpret_cast<void*>(&Energy)}};
}

NvmlLookup LookupIn(std::map<std::string, void*> symbols) {
  return [symbols = std::move(symbols)](const char* name) {
    const auto found = symbols.find(name);
    return found == symbols.end() ? nullptr : found->second;
  };
}

class NvmlTest : public ::testing::Test {
 protected:
  void SetUp() override { fake = FakeNvml(); }
  void TearDown() override { EXPECT_EQ(fake.open_sessions, 0) << "a session was left open"; }

  static absl::StatusOr<NvmlDevice> Open(std::string_view gpu = kUuid) {
    return NvmlDevice::OpenWith(gpu, LookupIn(Symbols()));
  }
};

TEST_F(NvmlTest, SamplesWhatTheGpuReports) {
  fake.reasons = 0x24;
  const NvmlDevice gpu = Open().value();
  const NvmlSample sample = gpu.Sample().value();
  EXPECT_EQ(sample.sm_clock_mhz, 1755);
  EXPECT_EQ(sample.memory_clock_mhz, 2619);
  EXPECT_EQ(sample.temperature_c, 41);
  EXPECT_EQ(sample.power_w, 310.5);
  EXPECT_EQ(sample.throttle_reasons, 0x24u);
}

TEST_F(NvmlTest, ReportsTheFactsOfTheGpu) {
  const NvmlFacts facts = Open()->Facts().value();
  EXPECT_EQ(facts.name, "NVIDIA Fake");
  EXPECT_EQ(facts.uuid, kUuid);
  EXPECT_EQ(facts.driver_version, "580.65.06");
  EXPECT_EQ(facts.max_sm_clock_mhz, 1980);
  EXPECT_EQ(facts.max_memory_clock_mhz, 3201);
  EXPECT_EQ(facts.power_limit_w, 700.0);
  EXPECT_EQ(facts.ecc, true);
}

TEST_F(NvmlTest, LeavesAGapForASensorThatIsNotThere) {
  fake.power_result = 3;        // not supported
  fake.temperature_result = 4;  // no permission
  fake.ecc_result = 3;
  const absl::StatusOr<NvmlDevice> gpu = Open();
  const NvmlSample sample = gpu->Sample().value();
  EXPECT_EQ(sample.power_w, std::nullopt);
  EXPECT_EQ(sample.temperature_c, std::nullopt);
  EXPECT_EQ(sample.sm_clock_mhz, 1755);
  EXPECT_EQ(gpu->Facts()->ecc, std::nullopt);
}

TEST_F(NvmlTest, ReadsTheEnergyCounterWhereThereIsOne) {
  EXPECT_EQ(Open()->EnergyJ(), 4711.25);
  fake.energy_result = 3;
  EXPECT_EQ(Open()->EnergyJ(), std::nullopt);
  std::map<std::string, void*> older = Symbols();
  older.erase("nvmlDeviceGetTotalEnergyConsumption");
  EXPECT_EQ(NvmlDevice::OpenWith(kUuid, LookupIn(older))->EnergyJ(), std::nullopt);
}

TEST_F(NvmlTest, ReportsASensorThatFails) {
  fake.power_result = 15;  // the GPU is lost
  EXPECT_THAT(Open()->Sample(),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("NVML: power: Some Error (15)")));
}

TEST_F(NvmlTest, OpensByUuidOrByPciBusId) {
  EXPECT_TRUE(Open(kUuid).ok());
  EXPECT_EQ(fake.opened_by, "uuid");
  EXPECT_TRUE(Open("0000:1b:00.0").ok());
  EXPECT_EQ(fake.opened_by, "pci");
}

TEST_F(NvmlTest, RefusesAnIdThatIsNeither) {
  EXPECT_THAT(Open("0"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'0' is neither")));
}

TEST_F(NvmlTest, SaysThatAGpuIsUnknown) {
  EXPECT_THAT(Open("GPU-ffffffff"),
              StatusIs(absl::StatusCode::kNotFound, AllOf(HasSubstr("can't open GPU GPU-ffffffff"),
                                                          HasSubstr("nvidia-smi -L"))));
}

TEST_F(NvmlTest, IsUnavailableWhenTheDriverIsNotLoaded) {
  fake.init_result = 9;
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("Driver Not Loaded (9)")));
}

TEST_F(NvmlTest, IsUnavailableWhenTheLibraryLacksAFunction) {
  for (const auto& [name, address] : Symbols()) {
    if (name == "nvmlDeviceGetTotalEnergyConsumption") continue;  // older GPUs have no counter
    std::map<std::string, void*> symbols = Symbols();
    symbols.erase(name);
    EXPECT_THAT(NvmlDevice::OpenWith(kUuid, LookupIn(symbols)),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr(name)));
  }
}

TEST_F(NvmlTest, ReadsEventReasonsByTheirOlderNameFromOlderDrivers) {
  std::map<std::string, void*> symbols = Symbols();
  symbols["nvmlDeviceGetCurrentClocksThrottleReasons"] =
      symbols.extract("nvmlDeviceGetCurrentClocksEventReasons").mapped();
  fake.reasons = 0x40;
  const NvmlDevice gpu = NvmlDevice::OpenWith(kUuid, LookupIn(symbols)).value();
  EXPECT_EQ(gpu.Sample()->throttle_reasons, 0x40u);
}

TEST_F(NvmlTest, KeepsItsSessionWhenMoved) {
  absl::StatusOr<NvmlDevice> opened = Open();
  NvmlDevice first = *std::move(opened);
  NvmlDevice second = std::move(first);
  EXPECT_EQ(fake.open_sessions, 1);
  EXPECT_TRUE(second.Sample().ok());
  // NOLINTNEXTLINE(bugprone-use-after-move): what a caller's mistake meets.
  EXPECT_EQ(first.Sample().status().code(), absl::StatusCode::kFailedPrecondition);
  second = *Open();
  EXPECT_EQ(fake.open_sessions, 1);
}

TEST(Nvml, IsUnavailableWithoutADriverAndSaysWhy) {
  if (void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    dlclose(library);
    GTEST_SKIP() << "this machine has the driver's libnvidia-ml.so.1";
  }
  EXPECT_THAT(NvmlDevice::Open(kUuid),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("libnvidia-ml.so.1"), HasSubstr("NVIDIA driver"))));
}

TEST(IsPowerCapped, IsTheBoardsOwnLimitAlone) {
  EXPECT_TRUE(IsPowerCapped(0x4));
  EXPECT_TRUE(IsPowerCapped(0x4 | 0x1 | 0x20));
  EXPECT_FALSE(IsPowerCapped(0x80)) << "the power brake comes from outside the board";
  EXPECT_FALSE(IsPowerCapped(0));
}

TEST(IsThrottledBesidesPowerCap, CountsHeatTheSupplyAndTheUnknown) {
  EXPECT_FALSE(IsThrottledBesidesPowerCap(0));
  EXPECT_FALSE(IsThrottledBesidesPowerCap(0x4));
  EXPECT_FALSE(IsThrottledBesidesPowerCap(0x4 | 0x1 | 0x2 | 0x100));
  for (const uint64_t reason : {0x8, 0x10, 0x20, 0x40, 0x80, 0x1000}) {
    EXPECT_TRUE(IsThrottledBesidesPowerCap(reason)) << reason;
    EXPECT_TRUE(IsThrottledBesidesPowerCap(reason | 0x4)) << reason;
  }
}

TEST(IsThrottled, TellsASlowedGpuFromAnIdleOne) {
  EXPECT_FALSE(IsThrottled(0));
  EXPECT_FALSE(IsThrottled(0x1 | 0x2 | 0x100));
  EXPECT_TRUE(IsThrottled(0x1 | 0x4));
  EXPECT_TRUE(IsThrottled(0x1000));
}

}  // namespace
}  // namespace warpledger
