#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Host b of the pair lane: runs what host a tells it, until that is @@end.

A connection is a command: the number of its words in a line, then the words, each ended by a zero byte. What the command
prints goes straight to the connection; behind it come \\x01 and the status. A connection that a closes before ends the
command, with the rest of its process group.
"""
import os
import select
import signal
import socket
import subprocess
import sys
import threading

ADDRESS = ("10.0.0.2", 1)
PATIENCE = 10  # seconds from SIGTERM to SIGKILL


def words(conn):
    with conn.makefile("rb", buffering=0) as stream:
        count = int(stream.readline())
        text = b""
        while text.count(b"\0") < count:
            more = stream.read(65536)
            if not more:
                raise ConnectionError("cut short")
            text += more
    return text.split(b"\0")[:count]


def end(child):
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
            child.wait(PATIENCE)
            return
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass


def run(conn, argv):
    try:
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=conn, stderr=conn, start_new_session=True)
    except OSError as error:
        conn.sendall(f"{error}\n\x01127".encode())
        return
    ended = os.pidfd_open(child.pid)
    ready, _, _ = select.select([ended, conn], [], [])
    if ended in ready:
        status = child.wait()
        conn.sendall(f"\x01{status if status >= 0 else 128 - status}".encode())
    else:
        end(child)
    os.close(ended)


def serve(conn):
    with conn:
        try:
            argv = words(conn)
            if argv == [b"@@end"]:
                conn.sendall(b"\x010")
                os._exit(0)
            run(conn, argv)
            # its daemons may have the connection open, too
            conn.shutdown(socket.SHUT_WR)
        except OSError as error:
            print(f"pair_obey: {error}", file=sys.stderr)


def main():
    os.environ["OBEY_PID"] = str(os.getpid())
    with socket.create_server(ADDRESS) as listener:
        while True:
            conn, _ = listener.accept()
            threading.Thread(target=serve, args=(conn,), daemon=True).start()


main()
