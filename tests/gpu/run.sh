#!/bin/sh
# Runs the GPU tests with the tcc-run of BIN_DIR, on a machine that needs no more than a driver.
#
#     run.sh [--on=hip] [BIN_DIR [TABLE.md]]
#
# --on=hip  through HIP, on one of AMD's GPUs: without what is NVIDIA's alone, IR of that target and
#           the names of the variants
# BIN_DIR   where tcc-run is; without it ../../bin (an installed tree) or ../../build/bin
# TABLE.md  gets the results as a Markdown table
#
# Prints a row for each test and `N passed, N failed`. Exit status 0 when all passed, 1 when one
# failed, 3 when there is no GPU.
#
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -eu
export TCC_FILL_WORKSPACE=1 # with NaN before each launch, also of --bench and --timeline

on=
case ${1-} in
--on=*)
    on=$1
    shift
    ;;
esac
case ${2-} in
'' | /*) table=${2-} ;;
*) table=$PWD/$2 ;;
esac
bin=
if [ $# -gt 0 ]; then
    bin=$(cd "$1" && pwd)
fi
cd "$(dirname "$0")"
for dir in ../../bin ../../build/bin; do
    [ -n "$bin" ] || [ ! -x "$dir/tcc-run" ] || bin=$dir
done
[ -x "$bin/tcc-run" ] || {
    echo "run.sh: no tcc-run in ${bin:-../../bin or ../../build/bin}" >&2
    exit 2
}

# One script, so that there is one process, one context and one count.
all=$(mktemp)
trap 'rm -f "$all"' EXIT
cat ./*.script >"$all"
[ "$on" != --on=hip ] || sed -e '/^[^ ]*\.tir /d' -e '/ --target /d' -e 's/ --variant [^ ]*//' ./*.script >"$all"
status=0
"$bin/tcc-run" ${on:+"$on"} --script "$all" ${table:+--table "$table"} || status=$?
exit "$status"
