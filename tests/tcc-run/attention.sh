# Runs a program at every level, and holds the result to what it should be: attention.sh DIR PROGRAM D SCALE HEADS
#
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -e
dir=$1 name=$2_$3
sed "s/@D@/$3/g; s/@SCALE@/$4/" $dir/$2.tir.in > $name.tir
tcc-opt $name.tir --passes=pipeline-copies,specialize-warps,distribute-grid,assign-layouts,chunk-epilogue,exchange-tiles,allocate-shared -o $name.async.ir
tcc-opt $name.async.ir --passes=lower-to-nvvm,expand-math,canonicalize,cse,licm,dce -o $name.target.ir
python3 $dir/whole_numbers.py Q.npy 1 $5 256 $3 --bf16 --most 1 --share 0.125
python3 $dir/whole_numbers.py K.npy 2 $5 256 $3 --bf16 --most 1 --share 0.25
python3 $dir/whole_numbers.py V.npy 3 $5 256 $3 --bf16
for ir in $name.tir $name.async.ir $name.target.ir; do
    tcc-run $ir --on=interp --input Q=Q.npy --input K=K.npy --input V=V.npy --output O=$ir.npy
    cmp $name.tir.npy $ir.npy
done
tcc-opt $name.target.ir --verify-pipeline -o /dev/null
python3 $dir/softmax_rows.py $3 $4 Q.npy K.npy V.npy $name.target.ir.npy
