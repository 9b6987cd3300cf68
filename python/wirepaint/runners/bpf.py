"""The BPF programs in the kernel, as bpf(2) lists them; needs root."""

from __future__ import annotations

import ctypes
import os
import platform
from contextlib import suppress

_SYSTEM_CALL = {"x86_64": 321, "aarch64": 280}
_PROG_GET_NEXT_ID, _PROG_GET_FD_BY_ID, _OBJ_GET_INFO_BY_FD = 11, 13, 15
_STRUCT_OPS = 27
"""BPF_PROG_TYPE_STRUCT_OPS: the type of a congestion control's programs."""
_NAME_AT, _NAME_BYTES, _INFO_BYTES = 64, 16, 256
"""Layout of struct bpf_prog_info (linux/bpf.h)."""


def struct_ops() -> dict[int, str]:
    """Programs of struct_ops by id, with the names of their C functions, cut to 15 characters.

    Empty if the kernel refuses the list.
    """
    found: dict[int, str] = {}
    number = 0
    with suppress(OSError):
        while True:
            number = _next(number)
            with suppress(OSError):  # it may be gone by now
                kind, name = _info(number)
                if kind == _STRUCT_OPS:
                    found[number] = name
    return found


def _next(number: int) -> int:
    attribute = (ctypes.c_uint32 * 3)(number, 0, 0)
    _call(_PROG_GET_NEXT_ID, attribute)
    return attribute[1]


def _info(number: int) -> tuple[int, str]:
    descriptor = _call(_PROG_GET_FD_BY_ID, (ctypes.c_uint32 * 3)(number, 0, 0))
    try:
        info = (ctypes.c_ubyte * _INFO_BYTES)()
        attribute = (ctypes.c_uint64 * 2)(descriptor | _INFO_BYTES << 32, ctypes.addressof(info))
        _call(_OBJ_GET_INFO_BY_FD, attribute)
        name = bytes(info[_NAME_AT : _NAME_AT + _NAME_BYTES]).split(b"\0")[0]
        return int.from_bytes(bytes(info[:4]), "little"), name.decode("ascii", "replace")
    finally:
        os.close(descriptor)


def _call(command: int, attribute: ctypes.Array[ctypes.c_uint32] | ctypes.Array[ctypes.c_uint64]) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    number = _SYSTEM_CALL.get(platform.machine())
    if number is None:
        raise OSError("not known on this processor")
    done = libc.syscall(number, command, ctypes.byref(attribute), ctypes.sizeof(attribute))
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(done)
