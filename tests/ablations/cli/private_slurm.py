# SPDX-License-Identifier: Apache-2.0
"""A Slurm of a test's own: slurmctld, a slurmd for each node and munged, all on this machine.

    with PrivateSlurm(folder, nodes=2) as slurm:
        slurm.call("sbatch", "job.sbatch")

Each node has one CPU and one GPU that is none, and a task finds CUDA_VISIBLE_DEVICES set to its
node's name. Everything lies in the folder: configuration, keys, sockets, spools, states and logs;
ports are free ones of the loopback. It needs no root, touches no Slurm of the system, and ends
what it started by id, even where the test fails.

Errors: OSError, and SlurmFailed with the daemons' last words.
"""

import contextlib
import getpass
import os
import pathlib
import re
import secrets
import shutil
import signal
import socket
import subprocess
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol")
_SBIN = "/usr/sbin"
_PATIENCE_S = 30
_NODE = "PRIVATE_SLURM_NODE"

_CONF = """ClusterName=private
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CredType=cred/munge
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdPidFile={folder}/%n.pid
SlurmdLogFile={folder}/%n.log
SlurmdSpoolDir={folder}/spool-%n
StateSaveLocation={folder}/state
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=1,sched_interval=1,sched_min_interval=100000
TaskProlog={folder}/prolog.sh
SlurmdTimeout=4
SlurmctldTimeout=10
KillWait=1
InactiveLimit=0
ReturnToService=2
JobRequeue=1
GresTypes=gpu
{nodes}PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
_PROLOG = """#!/bin/sh
echo "export CUDA_VISIBLE_DEVICES=$SLURMD_NODENAME"
"""


class SlurmFailed(Exception):
    pass


def missing_programs():
    return [name for name in PROGRAMS if _path_of(name) is None]


def _path_of(name):
    return shutil.which(name) or shutil.which(name, path=_SBIN)


def _free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


class PrivateSlurm:
    def __init__(self, folder, nodes):
        self.folder = pathlib.Path(folder)
        self.nodes = [f"node{i}" for i in range(nodes)]
        self.environment = os.environ | {"SLURM_CONF": self._conf()}
        self._daemons = {}

    def __enter__(self):
        try:
            self._configure()
            munged = ["munged", "--foreground", "--force", f"--key-file={self.folder}/munge.key",
                      f"--socket={self.folder}/munge.socket", f"--pid-file={self.folder}/munged.pid",
                      f"--log-file={self.folder}/munged.log", f"--seed-file={self.folder}/munge.seed",
                      "--num-threads=2"]
            self._start("munged", *munged)
            self._wait_for("munged", (self.folder / "munge.socket").exists)
            self._start("slurmctld", "slurmctld", "-D", "-c")
            for node in self.nodes:
                self.start_node(node)
            for node in self.nodes:
                self.wait_for_node(node, "IDLE")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in [*self.nodes, "slurmctld"]:
            self._stop(name)
        for pid in self.processes():
            _kill(pid)
        self._stop("munged")

    def call(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60,
                              cwd=self.folder, env=self.environment)
        if done.returncode != 0:
            raise SlurmFailed(f"{' '.join(command)}: {done.stderr}{self.last_words()}")
        return done.stdout

    def start_node(self, node):
        self._start(node, "slurmd", "-D", "-N", node)

    def wait_for_node(self, node, states):
        """`states`: names as scontrol has them, parted by |."""
        state = re.compile(rf"State=({states})\b")
        self._wait_for(node, lambda: state.search(self._said("scontrol", "show", "node", node)))

    def lose_node(self, node):
        """As where its machine loses its power: nothing on it says a word."""
        os.kill(self._daemons[node].pid, signal.SIGKILL)
        self._stop(node)
        for pid in self.processes(node):
            _kill(pid)

    def processes(self, node=None):
        """Of ours, steps and their tasks: those of a node, or all. No daemon."""
        daemons = {process.pid for process in self._daemons.values()} | {os.getpid()}
        found = []
        for path in pathlib.Path("/proc").iterdir():
            if not path.name.isdigit() or int(path.name) in daemons:
                continue
            try:
                environment = (path / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            # A step's environment is that of its slurmd, a task's that of sbatch.
            ours = {name: f"{name}={value}".encode() for name, value in
                    (("SLURM_CONF", self._conf()), (_NODE, node), ("SLURMD_NODENAME", node))}
            if ours["SLURM_CONF"] in environment and (
                    node is None or ours[_NODE] in environment
                    or ours["SLURMD_NODENAME"] in environment):
                found.append(int(path.name))
        return found

    def last_words(self):
        logs = sorted(self.folder.glob("*.log"))
        return "".join(f"\n--- {log.name}\n{log.read_text(errors='replace')[-2000:]}" for log in logs)

    def _conf(self):
        return str(self.folder / "slurm.conf")

    def _configure(self):
        for name in ["state", *(f"spool-{node}" for node in self.nodes)]:
            (self.folder / name).mkdir(mode=0o700)
        key = self.folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(128))
        prolog = self.folder / "prolog.sh"
        prolog.write_text(_PROLOG, encoding="utf-8")
        prolog.chmod(0o755)
        port, *ports = _free_ports(1 + len(self.nodes))
        host = socket.gethostname().split(".")[0]
        nodes = "".join(
            f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={of} CPUs=1 "
            f"RealMemory=100 Gres=gpu:1 State=UNKNOWN\n" for node, of in zip(self.nodes, ports))
        (self.folder / "slurm.conf").write_text(
            _CONF.format(host=host, port=port, user=getpass.getuser(), folder=self.folder,
                         nodes=nodes), encoding="utf-8")
        (self.folder / "gres.conf").write_text("Name=gpu File=/dev/null\n", encoding="utf-8")

    def _start(self, name, program, *arguments):
        with (self.folder / f"{name}.out.log").open("ab") as out:
            self._daemons[name] = subprocess.Popen(
                [_path_of(program), *arguments], cwd=self.folder, env=self.environment | {_NODE: name},
                stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def _stop(self, name):
        daemon = self._daemons.pop(name, None)
        if daemon is None:
            return
        daemon.terminate()
        try:
            daemon.wait(timeout=5)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()

    def _said(self, *command):
        try:
            return self.call(*command)
        except SlurmFailed:
            return ""

    def _wait_for(self, name, ready):
        end = time.monotonic() + _PATIENCE_S
        while not ready():
            daemon = self._daemons.get(name)
            if time.monotonic() > end or (daemon and daemon.poll() is not None):
                raise SlurmFailed(f"{name} is not ready{self.last_words()}")
            time.sleep(0.1)


def _kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
