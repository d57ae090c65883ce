"""Libraries to preload that simulate system failures, for one file or after a number of calls."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# Reads of the file whose path ends with $SHIM_FILE fail after $SHIM_BYTES bytes, as on a broken disk; with $SHIM_CUT,
# they reach the end of the file there.
BROKEN_DISK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static ssize_t done;

ssize_t read(int file, void* into, size_t size) {
    static ssize_t (*real)(int, void*, size_t);
    if (!real) *(void**)&real = dlsym(RTLD_NEXT, "read");
    const char* wanted = getenv("SHIM_FILE");
    char link[64], path[4096] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    const ssize_t length = readlink(link, path, sizeof path - 1);
    if (!wanted || length < (ssize_t)strlen(wanted) || strcmp(path + length - strlen(wanted), wanted) != 0)
        return real(file, into, size);
    const ssize_t left = atol(getenv("SHIM_BYTES")) - done;
    if (left <= 0) {
        if (getenv("SHIM_CUT")) return 0;
        errno = EIO;
        return -1;
    }
    const ssize_t found = real(file, into, size < (size_t)left ? size : (size_t)left);
    if (found > 0) done += found;
    return found;
}
"""

# The system provides only $SHIM_THREADS threads to the process.
FEW_THREADS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) {
    static int given;
    static int (*real)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    if (!real) *(void**)&real = dlsym(RTLD_NEXT, "pthread_create");
    if (__sync_fetch_and_add(&given, 1) >= atoi(getenv("SHIM_THREADS"))) return EAGAIN;
    return real(thread, attributes, start, argument);
}
"""


def compile_c(library: Path, source: str, *more: str) -> Path:
    """Compile a shared object from C, without PyTorch."""
    command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library), *more]
    subprocess.run(command, input=source, text=True, check=True)
    return library
