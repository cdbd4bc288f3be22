"""Runs a module as `python -m` does, and ends it when standard input closes: it never outlives its parent."""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time

#: seconds to end in good order
PATIENCE = 8.0


def _watch() -> None:
    while os.read(0, 4096):
        continue
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(PATIENCE)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_watch, daemon=True).start()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
