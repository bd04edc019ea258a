// SPDX-License-Identifier: Apache-2.0
#include "ablations/base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernels/common/text.h"

namespace warpledger::ablations {
namespace {

constexpr int kExecFailed = 127;
constexpr absl::Duration kTermGrace = absl::Seconds(5);

absl::Status Errno(std::string_view doing) {
  return absl::InternalError(absl::StrCat(Text(doing), ": ", std::strerror(errno)));
}

struct Child {
  pid_t pid = -1;
  int in = -1;   // its standard input
  int out = -1;  // its standard output

  ~Child() {
    CloseInput();
    if (out >= 0) close(out);
  }
  void CloseInput() {
    if (in >= 0) close(in);
    in = -1;
  }
};

absl::Status Start(const std::vector<std::string>& argv, Child& child) {
  int in[2];
  int out[2];
  if (pipe2(in, O_CLOEXEC) != 0) return Errno("making a pipe");
  if (pipe2(out, O_CLOEXEC) != 0) {
    close(in[0]);
    close(in[1]);
    return Errno("making a pipe");
  }
  std::vector<char*> args;
  for (const std::string& arg : argv) args.push_back(const_cast<char*>(arg.c_str()));
  args.push_back(nullptr);

  const pid_t parent = getpid();
  child.pid = fork();
  if (child.pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // scripts remove their scratch folders then
    if (getppid() != parent) _exit(kExecFailed);
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    // What is ignored stays ignored across exec.
    signal(SIGPIPE, SIG_DFL);
    execvp(args[0], args.data());
    _exit(kExecFailed);
  }
  close(in[0]);
  close(out[1]);
  child.in = in[1];
  child.out = out[0];
  return child.pid < 0 ? Errno("starting a process") : absl::OkStatus();
}

// Writes as much as the pipe takes; closes it once everything is written.
void Feed(Child& child, std::string_view& input) {
  const ssize_t written = write(child.in, input.data(), input.size());
  if (written > 0) input.remove_prefix(static_cast<size_t>(written));
  const bool failed = written < 0 && errno != EAGAIN && errno != EINTR;
  if (input.empty() || failed) child.CloseInput();
}

// Waits for the child to exit, `limit` at most; leaves it to be reaped.
bool ExitsWithin(const Child& child, absl::Duration limit) {
  const absl::Time deadline = absl::Now() + limit;
  while (true) {
    siginfo_t info = {};
    if (waitid(P_PID, static_cast<id_t>(child.pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == child.pid) {
      return true;
    }
    if (absl::Now() >= deadline) return false;
    absl::SleepFor(absl::Milliseconds(5));
  }
}

void Stop(const Child& child) {
  kill(child.pid, SIGTERM);
  if (!ExitsWithin(child, kTermGrace)) kill(child.pid, SIGKILL);
}

absl::Status Silent(absl::Duration limit) {
  return absl::DeadlineExceededError(
      absl::StrCat("said nothing for ", absl::FormatDuration(limit), "; stopped"));
}

absl::Status Pump(Child& child, std::string_view input, const SilenceLimit& silence_limit,
                  const std::function<absl::Status(std::string_view)>& on_line, bool* refused) {
  fcntl(child.in, F_SETFL, O_NONBLOCK);
  std::string pending;
  absl::Time last_line = absl::Now();
  char buffer[65536];
  while (true) {
    pollfd fds[2] = {{child.out, POLLIN, 0}, {child.in, POLLOUT, 0}};
    const absl::Duration limit = silence_limit();
    const absl::Duration left = last_line + limit - absl::Now();
    if (left <= absl::ZeroDuration()) return Silent(limit);
    const int timeout_ms =
        static_cast<int>(std::min<int64_t>(absl::ToInt64Milliseconds(left) + 1, 60'000));
    const int ready = poll(fds, child.in >= 0 ? 2 : 1, timeout_ms);
    if (ready < 0 && errno != EINTR) return Errno("waiting for a process");
    if (ready <= 0) continue;
    if (child.in >= 0 && fds[1].revents != 0) Feed(child, input);
    if (fds[0].revents == 0) continue;
    const ssize_t n = read(child.out, buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return absl::OkStatus();
    pending.append(buffer, static_cast<size_t>(n));
    size_t begin = 0;
    for (size_t end; (end = pending.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const absl::Status status = on_line(std::string_view(pending).substr(begin, end - begin));
      if (!status.ok()) {
        *refused = true;
        return status;
      }
      last_line = absl::Now();  // after on_line, whose time is none of the child's
    }
    pending.erase(0, begin);
  }
}

}  // namespace

absl::Status RunLines(const std::vector<std::string>& argv, std::string_view input,
                      const SilenceLimit& silence_limit,
                      const std::function<absl::Status(std::string_view line)>& on_line,
                      ProcessEnd* end) {
  ProcessEnd unused;
  if (end == nullptr) end = &unused;
  *end = ProcessEnd{};
  // A child that exits early must not take this process with it.
  signal(SIGPIPE, SIG_IGN);
  Child child;
  absl::Status status = Start(argv, child);
  if (!status.ok()) return status;
  status = Pump(child, input, silence_limit, on_line, &end->refused);
  child.CloseInput();
  if (status.ok() && !ExitsWithin(child, silence_limit())) status = Silent(silence_limit());
  end->silent = absl::IsDeadlineExceeded(status) && !end->refused;
  if (!status.ok()) Stop(child);
  int exit_status = 0;
  while (waitpid(child.pid, &exit_status, 0) < 0 && errno == EINTR) {
  }
  if (!status.ok())
    return absl::Status(status.code(), absl::StrCat(argv[0], ": ", status.message()));
  if (WIFSIGNALED(exit_status)) {
    end->signal = WTERMSIG(exit_status);
    return absl::AbortedError(absl::StrCat(argv[0], " was ended by signal ", end->signal, " (",
                                           strsignal(end->signal), ")"));
  }
  end->exit_code = WEXITSTATUS(exit_status);
  if (end->exit_code == kExecFailed) {
    return absl::NotFoundError(absl::StrCat("can't start ", argv[0]));
  }
  if (end->exit_code != 0) {
    return absl::AbortedError(absl::StrCat(argv[0], " exited with status ", end->exit_code));
  }
  return absl::OkStatus();
}

absl::Status RunLines(const std::vector<std::string>& argv, std::string_view input,
                      absl::Duration silence_limit,
                      const std::function<absl::Status(std::string_view line)>& on_line) {
  return RunLines(
      argv, input, [silence_limit] { return silence_limit; }, on_line);
}

}  // namespace warpledger::ablations
