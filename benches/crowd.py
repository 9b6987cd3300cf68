"""Many flows at once through a proxy: slow readers, resets and hostile origins beside flows that behave."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import resource
import socket
import struct
import termios
import time
from pathlib import Path

FLOWS = 500
LENGTH = 300_000
"""Bytes of a whole answer."""
BROKEN_AT = 60_000
"""Bytes of an answer that its origin or its browser breaks off."""
_PATTERN = bytes(range(251)) * (LENGTH // 251 + 2)
_RECEIVE_BUFFER = 16_384
_SEGMENT = 1_448
"""Loopback's own would be larger than that buffer, and a closed window would open late."""
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER with a time of 0."""
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"


def body(number: int) -> bytes:
    """Bytes that show to which flow and place they belong."""
    return _PATTERN[number % 251 :][:LENGTH]


def serve(listener: socket.socket) -> None:
    """The origins of all flows, until the process ends."""
    _allow_many_files()

    async def main() -> None:
        server = await asyncio.start_server(_answer, sock=listener)
        await server.serve_forever()

    asyncio.run(main())


def run(address: tuple[str, int]) -> tuple[int, float]:
    """All flows. Returns the bytes that were compared, and the seconds.

    Raises RuntimeError where bytes are not those of the origin.
    """
    _allow_many_files()
    began = time.perf_counter()
    return asyncio.run(_crowd(address)), time.perf_counter() - began


def peak_mb(pid: int) -> float:
    """The most memory that a process has had, MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024 / 1e6


def _allow_many_files() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            number = int(head.split(b" ", 2)[1][1:])
            match number % 10:
                case 6:
                    writer.write(_HEAD % 10**9)
                    while True:
                        writer.write(body(number))
                        await writer.drain()
                case 7:
                    writer.write(_HEAD % LENGTH + body(number)[:BROKEN_AT])
                    await _acknowledged(writer)
                    _reset(writer)
                    return
                case 8 if number % 20 == 8:
                    writer.write(b"HTTP/1.1 200 OK\r\n")
                    while True:
                        writer.write(b"x-endless: yes\r\n" * 100)
                        await writer.drain()
                case 8:
                    writer.write(_HEAD % LENGTH + body(number)[:BROKEN_AT])
                    writer.close()
                    return
                case _:
                    writer.write(_HEAD % LENGTH + body(number))
                    await writer.drain()


async def _acknowledged(writer: asyncio.StreamWriter) -> None:
    """Waits until the other kernel has all bytes: an end-to-end path would deliver them before a reset."""
    connection = writer.get_extra_info("socket")
    while (
        writer.transport.get_write_buffer_size()
        or struct.unpack("i", fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4)))[0]
    ):
        await asyncio.sleep(0.002)


def _reset(writer: asyncio.StreamWriter) -> None:
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()


async def _crowd(address: tuple[str, int]) -> int:
    loop, others_done = asyncio.get_running_loop(), asyncio.Event()
    flows = [socket.socket() for _ in range(FLOWS)]
    for connection in flows:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, _SEGMENT)
        connection.setblocking(False)
        await loop.sock_connect(connection, address)
    tasks = [asyncio.create_task(_flow(number, flow, others_done)) for number, flow in enumerate(flows)]
    await asyncio.gather(*(task for number, task in enumerate(tasks) if number % 10 != 9))
    others_done.set()
    return sum(await asyncio.gather(*tasks))


async def _flow(number: int, connection: socket.socket, others_done: asyncio.Event) -> int:
    """Returns the bytes that were compared."""
    loop, kind, compared = asyncio.get_running_loop(), number % 10, 0
    with connection:
        for _ in range(2 if kind < 5 else 1):
            await loop.sock_sendall(connection, b"GET /%d HTTP/1.1\r\nHost: a.test\r\n\r\n" % number)
            if kind == 9:
                await others_done.wait()
            # An answer that breaks is read to its end, slowly where that is a reset.
            most = {6: BROKEN_AT, 7: 2 * LENGTH, 8: BROKEN_AT + 1000}.get(kind, LENGTH)
            found = await _body(connection, most, 0.01 if kind in (5, 7) else 0)
            wanted = body(number)[: BROKEN_AT if kind in (6, 7, 8) else LENGTH]
            if number % 20 == 8:
                # No head ends there.
                continue
            if found != wanted:
                raise RuntimeError(f"flow {number}: {len(found)} bytes, not the {len(wanted)} of its origin")
            compared += len(wanted)
        if kind == 6:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    return compared


async def _body(connection: socket.socket, most: int, pause_s: float) -> bytes:
    """Reads a head, and at most so many bytes behind it; fewer where the connection ends or is reset."""
    loop, found, begin = asyncio.get_running_loop(), bytearray(), -1
    with contextlib.suppress(ConnectionResetError):
        while len(found) < max(begin, 0) + most:
            left = max(begin, 0) + most - len(found)
            part = await loop.sock_recv(connection, min(left, 8192 if pause_s else 65_536))
            if not part:
                break
            found += part
            if begin < 0 and (end := found.find(b"\r\n\r\n")) >= 0:
                begin = end + 4
            await asyncio.sleep(pause_s)
    return bytes(found[begin:]) if begin >= 0 else b""
