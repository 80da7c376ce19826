# Runs attention.tir.in at every level, and holds the result to what it should be: attention.sh D SCALE HEADS DIR
#
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -e
sed "s/@D@/$1/; s/@D@/$1/g; s/@SCALE@/$2/" $4/attention.tir.in > $1.tir
tcc-opt $1.tir --passes=pipeline-copies,specialize-warps,distribute-grid,chunk-epilogue,allocate-shared -o $1.async.ir
tcc-opt $1.async.ir --passes=lower-to-nvvm,expand-math,canonicalize,form-fma,cse,licm,dce -o $1.target.ir
python3 $4/whole_numbers.py Q.npy 1 $3 256 $1 --bf16 --most 1 --share 0.125
python3 $4/whole_numbers.py K.npy 2 $3 256 $1 --bf16 --most 1 --share 0.25
python3 $4/whole_numbers.py V.npy 3 $3 256 $1 --bf16
for ir in $1.tir $1.async.ir $1.target.ir; do
    tcc-run $ir --on=interp --input Q=Q.npy --input K=K.npy --input V=V.npy --output O=$ir.npy
    cmp $1.tir.npy $ir.npy
done
python3 $4/softmax_rows.py $1 $2 Q.npy K.npy V.npy $1.target.ir.npy
