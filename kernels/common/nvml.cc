// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/nvml.h"

#include <dlfcn.h>

#include <array>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace warpledger {
namespace {

constexpr char kLibrary[] = "libnvidia-ml.so.1";

// The part of NVML's C interface that is used here, as NVIDIA's NVML API
// reference documents it. Not every toolkit ships nvml.h, and the functions
// and numbers below have kept their meaning since they came into the library.
constexpr int kSuccess = 0;
constexpr int kNotSupported = 3;
constexpr int kNoPermission = 4;
constexpr int kNotFound = 6;
constexpr int kDriverNotLoaded = 9;
constexpr int kLibraryNotFound = 12;
constexpr int kFunctionNotFound = 13;
constexpr int kLibRmVersionMismatch = 18;
constexpr int kClockSm = 1;
constexpr int kClockMemory = 2;
constexpr int kTemperatureGpu = 0;

using Handle = void*;  // nvmlDevice_t

struct Api {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*handle_by_uuid)(const char*, Handle*) = nullptr;
  int (*handle_by_pci)(const char*, Handle*) = nullptr;
  int (*name)(Handle, char*, unsigned) = nullptr;
  int (*uuid)(Handle, char*, unsigned) = nullptr;
  int (*clock)(Handle, int type, unsigned* mhz) = nullptr;
  int (*max_clock)(Handle, int type, unsigned* mhz) = nullptr;
  int (*temperature)(Handle, int sensor, unsigned* celsius) = nullptr;
  int (*power)(Handle, unsigned* milliwatts) = nullptr;
  int (*power_limit)(Handle, unsigned* milliwatts) = nullptr;
  int (*event_reasons)(Handle, unsigned long long* mask) = nullptr;
  int (*ecc)(Handle, int* current, int* pending) = nullptr;
  int (*energy)(Handle, unsigned long long* millijoules) = nullptr;  // null: none (before Volta)
};

absl::StatusOr<Api> LoadApi(const NvmlLookup& lookup) {
  Api api;
  std::string missing;
  const auto load = [&](auto& function, std::initializer_list<const char*> symbols) {
    for (const char* symbol : symbols) {
      if (void* address = lookup(symbol)) {
        function = reinterpret_cast<std::decay_t<decltype(function)>>(address);
        return;
      }
    }
    if (missing.empty()) missing = *symbols.begin();
  };
  load(api.init, {"nvmlInit_v2"});
  load(api.shutdown, {"nvmlShutdown"});
  load(api.error_string, {"nvmlErrorString"});
  load(api.driver_version, {"nvmlSystemGetDriverVersion"});
  load(api.handle_by_uuid, {"nvmlDeviceGetHandleByUUID"});
  load(api.handle_by_pci, {"nvmlDeviceGetHandleByPciBusId_v2"});
  load(api.name, {"nvmlDeviceGetName"});
  load(api.uuid, {"nvmlDeviceGetUUID"});
  load(api.clock, {"nvmlDeviceGetClockInfo"});
  load(api.max_clock, {"nvmlDeviceGetMaxClockInfo"});
  load(api.temperature, {"nvmlDeviceGetTemperature"});
  load(api.power, {"nvmlDeviceGetPowerUsage"});
  load(api.power_limit, {"nvmlDeviceGetEnforcedPowerLimit"});
  // Drivers before 535 know the reasons by their older name only.
  load(api.event_reasons,
       {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
  load(api.ecc, {"nvmlDeviceGetEccMode"});
  api.energy =
      reinterpret_cast<decltype(api.energy)>(lookup("nvmlDeviceGetTotalEnergyConsumption"));
  if (!missing.empty()) {
    return absl::UnavailableError(absl::StrCat(
        kLibrary, " has no function ", missing,
        ": the GPU's clocks and temperature can't be read. Install a current NVIDIA driver"));
  }
  return api;
}

absl::Status NvmlError(const Api& api, absl::string_view what, int code) {
  const char* text = api.error_string(code);
  const std::string message =
      absl::StrCat("NVML: ", what, ": ", text != nullptr ? text : "unknown error", " (", code, ")");
  switch (code) {
    case kDriverNotLoaded:
    case kLibraryNotFound:
      return absl::UnavailableError(
          absl::StrCat(message, ". Run on a machine with an NVIDIA GPU and its driver loaded"));
    case kLibRmVersionMismatch:
      return absl::UnavailableError(
          absl::StrCat(message, ". The driver was updated under a loaded one: reboot the machine"));
    case kNoPermission:
      return absl::UnavailableError(
          absl::StrCat(message, ". Run as a user, or in a container, that may use the GPU"));
    case kNotFound:
      return absl::NotFoundError(
          absl::StrCat(message, ". `nvidia-smi -L` lists the GPUs that NVML sees"));
    default:
      return absl::InternalError(absl::StrCat(message, ". `nvidia-smi` may say more"));
  }
}

// A sensor that isn't there leaves a gap in the record; it doesn't end the run.
bool IsAbsent(int code) {
  return code == kNotSupported || code == kNoPermission || code == kFunctionNotFound;
}

// Stores the reading, or nothing where the sensor is absent.
template <typename Value, typename Reading>
absl::Status Keep(const Api& api, absl::string_view what, int code, Reading reading,
                  std::optional<Value>* out) {
  if (IsAbsent(code)) return absl::OkStatus();
  if (code != kSuccess) return NvmlError(api, what, code);
  *out = static_cast<Value>(reading);
  return absl::OkStatus();
}

constexpr double kWattsPerMilliwatt = 1e-3;

}  // namespace

// One initialised use of the library. NVML counts these, so several devices
// may be open at once.
class NvmlDevice::Session {
 public:
  static absl::StatusOr<std::unique_ptr<Session>> Start(const NvmlLookup& lookup) {
    absl::StatusOr<Api> api = LoadApi(lookup);
    if (!api.ok()) return api.status();
    if (const int code = api->init(); code != kSuccess) {
      return NvmlError(*api, "can't start", code);
    }
    return std::unique_ptr<Session>(new Session(*api));
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  // Its result is of no use: the readings are taken, and nothing was changed.
  ~Session() { api_.shutdown(); }

  const Api& api() const { return api_; }

 private:
  explicit Session(const Api& api) : api_(api) {}
  Api api_;
};

absl::StatusOr<NvmlDevice> NvmlDevice::Open(std::string_view gpu) {
  // Never closed: drivers don't promise to survive being unloaded, and the
  // library is wanted until the process ends.
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return absl::UnavailableError(absl::StrCat(
        "NVML can't be loaded: ", why != nullptr ? why : kLibrary,
        ". The NVIDIA driver brings this library: run on a machine with the driver, or pass the "
        "'utility' driver capability to the container"));
  }
  return OpenWith(gpu, [library](const char* symbol) { return dlsym(library, symbol); });
}

absl::StatusOr<NvmlDevice> NvmlDevice::OpenWith(std::string_view gpu, const NvmlLookup& lookup) {
  const std::string id(gpu);
  const bool is_uuid = absl::StartsWith(id, "GPU-") || absl::StartsWith(id, "MIG-");
  if (!is_uuid && !absl::StrContains(id, ':')) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", absl::Utf8SafeCEscape(id),
                     "' is neither a GPU's UUID (GPU-…) nor a PCI bus id (0000:1b:00.0); "
                     "`nvidia-smi --query-gpu=uuid,pci.bus_id --format=csv` shows both"));
  }
  absl::StatusOr<std::unique_ptr<Session>> session = Session::Start(lookup);
  if (!session.ok()) return session.status();
  const Api& api = (*session)->api();
  Handle handle = nullptr;
  const int code =
      is_uuid ? api.handle_by_uuid(id.c_str(), &handle) : api.handle_by_pci(id.c_str(), &handle);
  if (code != kSuccess) return NvmlError(api, absl::StrCat("can't open GPU ", id), code);
  return NvmlDevice(*std::move(session), handle);
}

NvmlDevice::NvmlDevice(std::unique_ptr<Session> session, void* handle)
    : session_(std::move(session)), handle_(handle) {}
NvmlDevice::NvmlDevice(NvmlDevice&& other) noexcept = default;
NvmlDevice& NvmlDevice::operator=(NvmlDevice&& other) noexcept = default;
NvmlDevice::~NvmlDevice() = default;

absl::StatusOr<NvmlSample> NvmlDevice::Sample() const {
  if (session_ == nullptr) return absl::FailedPreconditionError("NvmlDevice was moved from");
  const Api& api = session_->api();
  NvmlSample sample;
  absl::Status status;
  unsigned value = 0;
  int code = api.clock(handle_, kClockSm, &value);
  status.Update(Keep(api, "SM clock", code, value, &sample.sm_clock_mhz));
  code = api.clock(handle_, kClockMemory, &value);
  status.Update(Keep(api, "memory clock", code, value, &sample.memory_clock_mhz));
  code = api.temperature(handle_, kTemperatureGpu, &value);
  status.Update(Keep(api, "temperature", code, value, &sample.temperature_c));
  code = api.power(handle_, &value);
  status.Update(Keep(api, "power", code, value * kWattsPerMilliwatt, &sample.power_w));
  unsigned long long mask = 0;
  code = api.event_reasons(handle_, &mask);
  status.Update(Keep(api, "clock event reasons", code, mask, &sample.throttle_reasons));
  if (!status.ok()) return status;
  return sample;
}

std::optional<double> NvmlDevice::EnergyJ() const {
  unsigned long long millijoules = 0;
  if (session_ == nullptr || session_->api().energy == nullptr ||
      session_->api().energy(handle_, &millijoules) != kSuccess) {
    return std::nullopt;
  }
  return 1e-3 * static_cast<double>(millijoules);
}

absl::StatusOr<NvmlFacts> NvmlDevice::Facts() const {
  if (session_ == nullptr) return absl::FailedPreconditionError("NvmlDevice was moved from");
  const Api& api = session_->api();
  NvmlFacts facts;
  // 96 bytes is the largest buffer that NVML's reference asks for.
  std::array<char, 96> text = {};
  const auto read_text = [&](absl::string_view what, auto function, std::string* out) {
    const int code = function(text.data(), static_cast<unsigned>(text.size()));
    if (code != kSuccess) return NvmlError(api, what, code);
    *out = text.data();
    return absl::OkStatus();
  };
  absl::Status status;
  status.Update(read_text(
      "name", [&](char* out, unsigned size) { return api.name(handle_, out, size); }, &facts.name));
  status.Update(read_text(
      "UUID", [&](char* out, unsigned size) { return api.uuid(handle_, out, size); }, &facts.uuid));
  status.Update(read_text("driver version", api.driver_version, &facts.driver_version));
  unsigned value = 0;
  int code = api.max_clock(handle_, kClockSm, &value);
  status.Update(Keep(api, "maximum SM clock", code, value, &facts.max_sm_clock_mhz));
  code = api.max_clock(handle_, kClockMemory, &value);
  status.Update(Keep(api, "maximum memory clock", code, value, &facts.max_memory_clock_mhz));
  code = api.power_limit(handle_, &value);
  status.Update(Keep(api, "power limit", code, value * kWattsPerMilliwatt, &facts.power_limit_w));
  int ecc = 0;
  int ecc_after_reboot = 0;
  code = api.ecc(handle_, &ecc, &ecc_after_reboot);
  status.Update(Keep(api, "ECC mode", code, ecc != 0, &facts.ecc));
  if (!status.ok()) return status;
  return facts;
}

}  // namespace warpledger
