#!/usr/bin/env bash
# Sets up this machine: system packages, then a virtual environment with this project in it.
#
# The Makefile calls it before each command that needs it, with
#   FOR    what to set up for: demo, or dev, which includes demo (dev)
#   VENV   the virtual environment's folder, relative to the repository (.venv)
#   TORCH  a version of PyTorch to install instead of the one in constraints.txt (empty: that one)
#
# Running it again is cheap and safe. The virtual environment contains a stamp, a digest of everything that
# it was created from, and what it was set up for. The stamp is written last, so an environment without one is
# incomplete, and is created again.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$root"
purpose=${FOR:-dev}
HOME=${HOME:-/root}
venv=$root/${VENV:-.venv}
torch=${TORCH:-}
stamp=$venv/opwright-stamp
oldest_python=3.10
log=$(mktemp)
trap 'rm -f "$log"' EXIT

say() { printf 'setup: %s\n' "$*"; }
die() {
    printf 'setup: %s\n' "$@" >&2
    exit 1
}

# Ends the set-up after a program failed: with the cause, if it is a full disk or the network. $log has the program's output.
die_of() {
    if grep -qiE 'no space left|enough free space|quota exceeded' "$log" || [ "$(free_megabytes "$venv")" -lt 50 ]; then
        die "$1: the disk is full. Free: $(free_megabytes "$venv") MB for $venv, $(free_megabytes "$HOME") MB for pip's cache in $HOME," \
            "$(free_megabytes /usr) MB for system packages in /usr, $(free_megabytes /var/cache) MB for apt's cache in /var/cache." \
            "The set-up takes 9 GB with PyTorch's CUDA build, and 6 GB with its CPU build; pip needs up to 3 GB more meanwhile." \
            "Free some space and run make again."
    elif grep -qiE 'connection (refused|reset|broken|error|to .* timed)|new connection|resolving|name resolution|unreachable|could not connect|unable to connect|timed out|proxy|certificate' "$log"; then
        die "$1: a package server cannot be reached; the output above names it." \
            "Check the network, and proxies and certificates if this network requires them, and run make again."
    fi
    die "$1; the output is above. Run make again to start over."
}

# Runs a program whose errors are shown and kept in $log.
logged() {
    local status=0
    { "$@"; } 2> >(tee "$log" >&2) || status=$?
    wait "$!" # for tee
    return "$status"
}

# The free space for a file or folder, which need not exist yet.
free_megabytes() {
    local path=$1
    while [ ! -e "$path" ]; do path=$(dirname "$path"); done
    df -m --output=avail "$path" | tail -n 1 | tr -d ' '
}

# ---- the interpreter ---------------------------------------------------------------------------------------

# Fills python_version, python (free of any active virtual environment), has_venv, has_headers and has_gil.
look_at_python() {
    local facts
    command -v python3 >/dev/null || die "no python3 on PATH; opwright requires Python $oldest_python or newer." \
        "On Debian or Ubuntu: apt-get install python3"
    facts=$(python3 -c '
import os, sys, sysconfig
from importlib.util import find_spec
print("%d.%d.%d" % sys.version_info[:3])
print(os.path.realpath(sys.executable))
print("yes" if find_spec("venv") and find_spec("ensurepip") else "no")
print("yes" if os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")) else "no")
print("no" if sysconfig.get_config_var("Py_GIL_DISABLED") else "yes")
') || die "$(command -v python3) does not run; its own message is above. Fix it, or put another python3 first on PATH."
    { read -r python_version && read -r python && read -r has_venv && read -r has_headers && read -r has_gil; } <<<"$facts"
    [ "$(printf '%s\n' "$oldest_python" "$python_version" | sort -V | head -n 1)" = "$oldest_python" ] ||
        die "python3 is $python ($python_version); opwright requires Python $oldest_python or newer." \
            "Put a newer python3 first on PATH and run this again."
    [ "$has_gil" = yes ] ||
        die "python3 is $python ($python_version), a free-threaded build, which opwright does not support." \
            "Put a python3 with the global interpreter lock first on PATH and run this again."
}

# Rejects a python3 that the system packages could not complete: one from pyenv, conda or a PPA.
check_python() {
    local fix="Debian's python3-venv and python3-dev serve only its own python3. Complete this one, or put another first on PATH."
    [ "$has_venv" = yes ] || die "$python ($python_version) cannot create virtual environments: no venv or no ensurepip." "$fix"
    [ "$has_headers" = yes ] || die "$python ($python_version) has no Python.h." "$fix"
}

# ---- system packages ---------------------------------------------------------------------------------------

# Prints the listed packages that this machine lacks. Those marked with "dev" are not for the demo.
missing_packages() {
    local wanted installed package missing=()
    wanted=$(sed 's/#.*//' setup/system-packages.txt | awk -v purpose="$purpose" 'NF == 1 || $2 == purpose { print $1 }')
    # shellcheck disable=SC2086  # a list of words
    installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $wanted 2>/dev/null | sed -n 's/^installed //p') || true
    for package in $wanted; do
        case $package in
        python3-venv) [ "$has_venv" = yes ] && continue ;;
        python3-dev) [ "$has_headers" = yes ] && continue ;;
        pkg-config) command -v pkg-config >/dev/null && continue ;; # newer systems have it from pkgconf
        esac
        grep -qxF "$package" <<<"$installed" || missing+=("$package")
    done
    printf '%s' "${missing[*]}"
}

install_packages() {
    local missing as_root=()
    if ! command -v dpkg-query >/dev/null; then
        [ -e "$stamp" ] || say "neither Debian nor Ubuntu: the equivalents of setup/system-packages.txt must be installed already."
        return
    fi
    missing=$(missing_packages)
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" != 0 ]; then
        # sudo can ask for a password only at a terminal.
        if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
            as_root=(sudo)
        else
            die "these system packages are missing, and only root can install them. As root, run:" \
                "    apt-get update && apt-get install --no-install-recommends $missing" \
                "and then run make again."
        fi
    fi
    say "system packages, through apt (the first time takes minutes): $missing"
    as_root+=(env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -q -o DPkg::Lock::Timeout=300)
    # apt reports each of a few hundred packages, which is worth reading only if it fails.
    # shellcheck disable=SC2086  # a list of words
    if ! { "${as_root[@]}" update && "${as_root[@]}" install -y --no-install-recommends $missing; } >"$log" 2>&1; then
        tail -n 30 "$log" >&2
        die_of "apt could not install $missing"
    fi
    say "$(grep -E '^(After this operation|Need to get)' "$log" | tr '\n' ' ')"
    look_at_python
}

# ---- Python packages ---------------------------------------------------------------------------------------

digest() { sha256sum | cut -d ' ' -f 1; }

# A change of these requires a new environment, which cannot be moved or run with another interpreter.
ground_digest() { { printf '%s\n' "$root" "$python" "$python_version" "$torch" && cat setup/setup.sh; } | digest; }

# A change of these requires other packages. Of pyproject.toml only the tables that name packages count, not lint rules.
contents_digest() {
    { awk '/^\[/ { wanted = /^\[(build-system|project|tool\.hatch)/ } wanted' pyproject.toml && cat constraints.txt; } | digest
}

pip_install() {
    # pip shows its progress on a terminal. Wheels of PyTorch can be too large for /tmp, which newer systems keep in memory.
    local quiet=()
    [ -t 1 ] || quiet=(-q)
    mkdir -p "$venv/tmp"
    TMPDIR=$venv/tmp logged "$venv/bin/python" -m pip install "${quiet[@]}" --disable-pip-version-check --no-compile \
        -c "$venv/constraints.txt" "$@" || die_of "pip could not install the Python packages"
    rm -rf "$venv/tmp"
}

install_python_packages() {
    local ground contents old_ground='' old_contents='' old_purpose='' version
    ground=$(ground_digest) contents=$(contents_digest)
    if [ -x "$venv/bin/python" ] && [ -f "$stamp" ]; then
        { read -r old_ground && read -r old_contents && read -r old_purpose; } <"$stamp" || true
    fi
    version=${torch:-$(sed -n 's/^torch==//p' constraints.txt)}
    if [ "$old_ground $old_contents" = "$ground $contents" ] && [[ $old_purpose == "$purpose" || $old_purpose == dev ]]; then
        say "${VENV:-.venv} is up to date (Python $python_version, PyTorch $version)"
        return
    fi
    if [ "$old_ground" = "$ground" ]; then
        say "updating ${VENV:-.venv}"
        [ "$old_purpose" != dev ] || purpose="dev"
    else
        say "creating ${VENV:-.venv} with Python $python_version"
        logged "$python" -m venv --clear "$venv" || die_of "the virtual environment could not be created"
        say "downloading PyTorch $version and other Python packages. By default, pip takes PyTorch's CUDA build: a download of 3 GB."
        say "To take its CPU build, 0.2 GB, press Ctrl-C and set PIP_EXTRA_INDEX_URL to the address that"
        say "https://pytorch.org/get-started/locally/ shows for pip, Linux and CPU."
    fi
    rm -f "$stamp"
    sed "s/^torch==.*/torch==$version/" constraints.txt >"$venv/constraints.txt"
    # An isolated build would fetch whichever hatchling is newest: build with the pinned one instead.
    pip_install hatchling editables
    pip_install --no-build-isolation -e "${root}[$purpose]"
    # pip compiles with one core. Some packages contain files for other releases of Python, which do not compile.
    "$venv/bin/python" -m compileall -q -j 0 "$venv/lib" >/dev/null || true
    printf '%s\n' "$ground" "$contents" "$purpose" >"$stamp.new"
    mv "$stamp.new" "$stamp"
    say "done in $((SECONDS / 60)) min $((SECONDS % 60)) s; ${VENV:-.venv} uses $(du -sh "$venv" | cut -f 1)"
}

[[ $purpose == demo || $purpose == dev ]] || die "FOR is '$purpose'; expected demo or dev."
[[ $torch =~ ^([0-9]+(\.[0-9]+)*([a-z]+[0-9]*)?(\+[a-z0-9.]+)?)?$ ]] ||
    die "TORCH is '$torch'; expected a version of PyTorch, as in TORCH=2.15.0."

# Concurrent runs of make take turns. The system releases the lock when the process exits.
exec 9<"${BASH_SOURCE[0]}"
flock --nonblock 9 || { say "another set-up is running here; waiting for it" && flock 9; }
look_at_python
install_packages
check_python
install_python_packages
