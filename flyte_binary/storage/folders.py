"""Opening files below a root without ever following a symbolic link.

Every folder on the way is opened relative to the one above it, with `O_NOFOLLOW`, so that neither a
link that lies there nor one that is put there meanwhile leads out of the root. The root itself may be
reached through links: it is ours.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Generator, Sequence

from flyte_binary.domain.errors import (
    FailedPrecondition,
    FlyteError,
    Internal,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
)

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextlib.contextmanager
def opened_folder(root: str, segments: Sequence[str], *, create: bool, sync: bool = False) -> Generator[int]:
    """A descriptor of the folder `root/segments…`; `create` makes what is missing, to stay if `sync`."""
    current = os.open(root, _FOLDER & ~os.O_NOFOLLOW)
    try:
        for segment in segments:
            below = _open_below(current, segment, create=create, sync=sync)
            os.close(current)
            current = below
        yield current
    finally:
        os.close(current)


def _open_below(parent: int, name: str, *, create: bool, sync: bool) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=parent)
    except FileNotFoundError:
        if not create:
            raise
    except NotADirectoryError:
        refuse_link(name, parent)
        raise
    with contextlib.suppress(FileExistsError):  # somebody else made it meanwhile
        os.mkdir(name, dir_fd=parent)
        if sync:
            os.fsync(parent)
    return os.open(name, _FOLDER, dir_fd=parent)


def open_file(name: str, folder: int) -> int:
    """A descriptor for reading a regular file; anything else is refused, and a pipe does not block."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise FileNotFoundError(errno.ENOENT, "not a regular file", name)


def refuse_link(name: str, folder: int) -> None:
    if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        raise PermissionDenied(f"{name!r} is a symbolic link, which the store does not follow")


@contextlib.contextmanager
def disk_errors(path: str, *, writing: bool = False) -> Generator[None]:
    """The one place where errors of the operating system become ours."""
    try:
        yield
    except OSError as error:
        raise _translated(error, path, writing=writing) from error


def _translated(error: OSError, path: str, *, writing: bool) -> FlyteError:
    reason = error.strerror or str(error)
    match error.errno:
        case errno.ENOENT | errno.ENOTDIR | errno.EISDIR if not writing:
            return NotFound(f"there is no object {path}")
        case errno.ENOTDIR:
            return FailedPrecondition(f"cannot write {path}: what should be a folder on the way to it is an object")
        case errno.EISDIR | errno.ENOTEMPTY:
            return FailedPrecondition(f"cannot write {path}: there is a folder of that name")
        case errno.ELOOP:
            return PermissionDenied(f"{path} is a symbolic link, which the store does not follow")
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            return ResourceExhausted(f"no room to write {path}: {reason}")
        case errno.ENAMETOOLONG:
            return InvalidArgument(f"{path} is too long a name for this disk")
        case _:
            return Internal(f"the disk refused {path}: {reason}")
