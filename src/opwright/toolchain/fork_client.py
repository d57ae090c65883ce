"""Runs a module through a fork server, and exits with its status; without a server, runs the module itself.

    python -IS fork_client.py FOLDER MODULE [ARGUMENT ...]

It imports only small modules, because the server exists to save time.
"""

import json
import os
import resource
import signal
import socket
import sys
import time


def _connected(folder: str) -> "socket.socket | None":
    server = socket.socket(socket.AF_UNIX)
    while not os.path.exists(f"{folder}/ended") and os.path.isdir(folder):
        try:
            server.connect(f"{folder}/socket")
        except (FileNotFoundError, ConnectionRefusedError):
            time.sleep(0.01)
        except OSError:
            return None
        else:
            return server
    return None


def main() -> None:
    """Run the module, in the server or in this process."""
    folder, module, *arguments = sys.argv[1:]
    server = _connected(folder)
    if server is None:
        os.execv(sys.executable, [sys.executable, "-m", module, *arguments])
    job = {"module": module, "arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)}
    text = json.dumps(job).encode()
    socket.send_fds(server, [len(text).to_bytes(8, "little")], [0, 1, 2])
    server.sendall(text)
    status = int(server.recv(16) or 1)
    if status < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the killed process has dumped its own core
        if -status not in (signal.SIGKILL, signal.SIGSTOP):  # these cannot have handlers
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)


if __name__ == "__main__":
    main()
