# Assembles target IR; fails where ptxas spills or warns: assemble.sh PTXAS NAME...
#
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -e
ptxas=$1
shift
for name; do
    tcc-opt $name.target.ir --no-verify-pipeline --emit=ptx -o $name.ptx
    $ptxas -arch=sm_90a -v $name.ptx -o $name.cubin > $name.log 2>&1
    ! grep -E "error|fatal|warning|C7[0-9]|[1-9][0-9]* bytes spill" $name.log
done
