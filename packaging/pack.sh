# pack.sh: archives and the wheel. Read by ./dev, whose functions it uses.
#
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# shellcheck shell=sh disable=SC2154 # variables of ./dev

# ---- another architecture --------------------------------------------------------------------

# What builds and runs programs of $arch. An empty one is this machine's.
choose_arch()
{
    machine=$(uname -m)
    cross=
    emulator=
    sysroot=
    cc=gcc
    llvm_libdir=/usr/lib/llvm-22/lib
    case $arch:$machine in
    :* | amd64:x86_64 | arm64:aarch64) ;;
    arm64:*)
        machine=aarch64 cross=-arm64 sysroot=$PWD/build-sysroot-arm64
        emulator="/usr/bin/qemu-aarch64 -L $sysroot"
        cc="aarch64-linux-gnu-gcc --sysroot=$sysroot"
        llvm_libdir=$sysroot$llvm_libdir
        packages="$packages gcc-aarch64-linux-gnu qemu-user"
        ;;
    *) die "no way to build for '$arch'; there is arm64" ;;
    esac
    archive_name=tcc-$version-linux-$machine
}

# The other architecture's libraries, once.
setup_sysroot()
{
    [ -n "$cross" ] || return 0
    set -- llvm-22-dev libstdc++-12-dev libc6-dev zlib1g-dev libzstd-dev check libmpfr-dev python3-numpy libpython3-dev
    [ "$(cat "$sysroot/complete" 2>/dev/null)" != "$(printf '%s\n' "$@")" ] || return 0
    say "unpacking Debian's packages for $arch into $sysroot"
    rm -rf "$sysroot"
    packaging/sysroot.sh "$arch" "$sysroot" "$@"
}

# ---- archives ------------------------------------------------------------------------------

# When the sources were changed, in seconds since 1970. In a source archive all files have that time. There may be no
# git, or one that trusts no folder of another user.
changed()
{
    if [ -n "${SOURCE_DATE_EPOCH-}" ]; then
        echo "$SOURCE_DATE_EPOCH"
    elif ! { [ -e .git ] && git log -1 --format=%ct 2>/dev/null; }; then
        stat -c %Y CHANGELOG.md
    fi
}

# tar's output for a folder, the same for the same files, whoever unpacked them and when.
pack() # PARENT FOLDER
{
    tar -C "$1" --sort=name --mtime="@$(changed)" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
        --format=gnu -cf - "$2"
}

# What is committed, or in a source archive all that it had. Tests have no time for xz's best.
source_archive() # [FOLDER]
{
    out=${1-dist}
    tmp=$(mktemp -d)
    trap 'rm -rf "$tmp"' EXIT
    mkdir -p "$out" "$tmp/tcc-$version"
    if [ -e .git ]; then
        [ -z "$(git status --porcelain)" ] || echo "dev: what is not committed is left out" >&2
        git archive HEAD | tar -xf - -C "$tmp/tcc-$version"
    else
        tar --exclude='./build*' --exclude=./dist --exclude="./$out" -cf - . | tar -xf - -C "$tmp/tcc-$version"
    fi
    pack "$tmp" "tcc-$version" | xz "-${TCC_XZ_PRESET-9e}" >"$out/tcc-$version.tar.xz"
    echo "$out/tcc-$version.tar.xz: $(wc -c <"$out/tcc-$version.tar.xz") bytes"
}

dist()
{
    build "release$cross"
    tree=dist/$archive_name
    rm -rf "$tree"
    cmake --install "build-release$cross" --prefix "$tree" >/dev/null
    cp -R README.md LICENSE CHANGELOG.md examples "$tree/"
    mkdir "$tree/docs" "$tree/tests"
    cp docs/*.md docs/*.svg docs/timeline.py "$tree/docs/" # not what generates them
    cp -R tests/gpu tests/interp "$tree/tests/"
    python3 tests/docs/links.py --cut "$tree" # to sources, which it does not have

    say "packing $tree.tar.xz"
    filter=
    [ "$machine" != x86_64 ] || filter=--x86
    # shellcheck disable=SC2086 # none or one
    pack dist "$archive_name" | xz $filter --lzma2=preset=9e >"$tree.tar.xz"
    rm -rf "$tree"
    check_archive "$tree.tar.xz"
}

# ---- what they promise ---------------------------------------------------------------------

# Binaries need nothing but glibc, of 2.34 or later.
check_needs() # BINARY...
{
    for binary; do
        readelf -d "$binary" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
            grep -vE '^(libtcc\.so\.[0-9.]+|libc\.so\.6|libm\.so\.6|ld-linux-(x86-64|aarch64)\.so\.[12])$' &&
            die "$binary needs these"
        newest=$(readelf -V "$binary" | sed -n 's/.*Name: GLIBC_\([0-9.]*\).*/\1/p' | sort -uV | tail -n 1)
        [ -n "$newest" ] || die "$binary needs no glibc"
        [ "$(printf '%s\n' "$newest" 2.34 | sort -V | tail -n 1)" = 2.34 ] ||
            die "$binary needs glibc $newest"
    done
}

# Its size, what it needs, that it works anywhere, and that it leaves another LLVM of the process alone.
check_archive() # ARCHIVE
{
    size=$(wc -c <"$1")
    echo "$1: $size bytes"
    [ "$size" -le 15000000 ] || die "the archive is larger than 15 MB"
    tmp=$(mktemp -d)
    trap 'rm -rf "$tmp"' EXIT
    tar -xJf "$1" -C "$tmp"
    top=$tmp/$archive_name
    python3 tests/docs/links.py "$top" || die "links in the archive lead nowhere"

    check_needs "$top"/bin/* "$top"/lib/*.so*
    # shellcheck disable=SC2086 # a command's words
    env -i $emulator "$top/bin/tcc" --version
    # shellcheck disable=SC2086
    env -i $emulator "$top/bin/tcc" "$top/examples/matmul.tile" -o "$tmp/matmul.ptx"
    grep -q '^\.visible \.entry matmul' "$tmp/matmul.ptx" || die "no kernel in the archive's PTX"
    echo "$1: works with no more than glibc 2.34"

    # shellcheck disable=SC2086
    $cc -Wall -Wextra -rdynamic -I"$top/include" -isystem "$llvm_libdir/../include" \
        tests/install/host.c -o "$tmp/host" -L"$top/lib" -Wl,-rpath,"$top/lib" -ltcc \
        -L"$llvm_libdir" -lLLVM-22
    # shellcheck disable=SC2086
    $emulator "$tmp/host" || die "libtcc disturbs another LLVM of its process"
    echo "$1: leaves another LLVM alone"
}

# ---- wheel ---------------------------------------------------------------------------------

wheel()
{
    build "release$cross"
    say "packing the wheel"
    tmp=$(mktemp -d)
    trap 'rm -rf "$tmp"' EXIT
    cmake --install "build-release$cross" --prefix "$tmp/tree" >/dev/null
    cmake --install "build-release$cross" --prefix "$tmp/tree" --component python >/dev/null
    wheel=$(python3 python/wheel.py "$tmp/tree" "$(changed)" dist)
    advzip -z -3 -q "$wheel" # 4 % smaller than by Python's zlib, for a minute and a half
    size=$(wc -c <"$wheel")
    echo "$wheel: $size bytes"
    [ "$size" -le 20000000 ] || die "the wheel is larger than 20 MB"

    python3 -m zipfile -e "$wheel" "$tmp/site"
    check_needs "$tmp"/site/tcc/*.so*
    if [ -n "$cross" ]; then
        # Debian's numpy, with the BLAS that its installation would have linked to.
        python="$emulator $sysroot/usr/bin/python3.11"
        set -- PYTHONHOME="$sysroot/usr" PYTHONPATH="$tmp/site:$sysroot/usr/lib/python3/dist-packages" \
            LD_LIBRARY_PATH=/usr/lib/aarch64-linux-gnu/blas:/usr/lib/aarch64-linux-gnu/lapack
    else
        python=$(command -v python3)
        "$python" -c 'import numpy' 2>/dev/null || python=/usr/bin/python3 # which has Debian's
        set -- PYTHONPATH="$tmp/site"
    fi
    # shellcheck disable=SC2086 # a command's words
    env -i HOME="$tmp" "$@" $python tests/python/examples.py || die "the examples in the wheel fail"
}
