#!/bin/sh
# Times the kernels of hopper.tile in turn with cuBLASLt and prints the table of ratios.
#
#     run.sh [BIN_DIR [SCRIPT]]
#
# BIN_DIR  where tcc-run is (../build/bin)         SCRIPT  hopper.script, or lines like its own
#
# libcublasLt is looked for in LD_LIBRARY_PATH, CUDA_HOME/lib64 and /usr/local/cuda/lib64.
#
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -eu

here=$(cd "$(dirname "$0")" && pwd)
bin=$(cd "${1-$here/../build/bin}" && pwd)
script=${2-$here/hopper.script}
cd "$(dirname "$script")"

table=$(mktemp)
trap 'rm -f "$table"' EXIT
status=0
"$bin/tcc-run" --script "$(basename "$script")" --table "$table" || status=$?
echo
cat "$table"
exit "$status"
