# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium with real keys, by its debugging pipe; no driver and no network.

  with Browser(page) as browser:
      browser.press("Tab")
      browser.value("document.activeElement.id")

The page is a file. `requests` are the addresses that it asked for, `complaints` what its console and
uncaught exceptions said.
"""

import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# A reply later than that, under load, is none.
SILENCE_S = 60
# Keys that type no letter: their code on a Windows keyboard, which Chromium acts on.
CODES = {"Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowUp": 38, "ArrowDown": 40}


class Browser:
    def __init__(self, page, width=1200, height=900):
        self.requests, self.complaints = [], []
        self._size = f"{width},{height}"
        self._page = pathlib.Path(page).resolve().as_uri()
        self._number, self._unread = 0, b""

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        # Chromium reads commands from descriptor 3 and writes to 4; a shell puts them there.
        theirs, self._commands = os.pipe()
        self._replies, answers = os.pipe()
        self._process = subprocess.Popen(
            ["sh", "-c", f'exec "$0" "$@" 3<&{theirs} 4>&{answers}', PROGRAM, "--headless=new",
             "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", f"--window-size={self._size}",
             f"--user-data-dir={self._folder.name}", "about:blank"],
            pass_fds=(theirs, answers), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(theirs)
        os.close(answers)
        try:
            target = next(target for target in self._ask("Target.getTargets")["targetInfos"]
                          if target["type"] == "page")
            self._session = self._ask("Target.attachToTarget", targetId=target["targetId"],
                                      flatten=True)["sessionId"]
            for domain in "Network", "Runtime", "Page", "Log":
                self._do(f"{domain}.enable")
            self.open(self._page)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        os.close(self._commands)
        os.close(self._replies)
        self._folder.cleanup()

    def open(self, address):
        self._do("Page.navigate", url=address)
        self._read(lambda message: message.get("method") == "Page.loadEventFired")

    def value(self, expression):
        """Of JavaScript, as JSON has it."""
        result = self._do("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def press(self, key, times=1):
        """A key by its name, or a letter."""
        code = CODES.get(key)
        text = {"Enter": "\r"}.get(key, "" if code else key)
        for _ in range(times):
            for kind in "keyDown", "keyUp":
                self._do("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                         windowsVirtualKeyCode=code or 0, **({"text": text} if text else {}))

    def type(self, text):
        for letter in text:
            self.press(letter)

    def _do(self, method, **parameters):
        return self._ask(method, session=self._session, **parameters)

    def _ask(self, method, session=None, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        reply = self._read(lambda message: message.get("id") == self._number)
        assert "error" not in reply, (method, reply)
        return reply["result"]

    def _read(self, is_wanted):
        """The next message that is wanted; what others say is kept."""
        while True:
            while b"\0" not in self._unread:
                ready, _, _ = select.select([self._replies], [], [], SILENCE_S)
                data = os.read(self._replies, 1 << 20) if ready else b""
                assert data, f"{PROGRAM} ended, or said nothing for {SILENCE_S} s"
                self._unread += data
            line, self._unread = self._unread.split(b"\0", 1)
            message = json.loads(line)
            self._note(message.get("method"), message.get("params"))
            if is_wanted(message):
                return message

    def _note(self, method, parameters):
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(parameters["exceptionDetails"])
        elif method == "Log.entryAdded":
            self.complaints.append(parameters["entry"]["text"])
