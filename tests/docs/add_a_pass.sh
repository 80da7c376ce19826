# In a folder with single_trip.c, makes tcc and tcc-opt with that pass in the table and in the list of
# passes, by the lines that docs/add-a-pass.md shows for them: add_a_pass.sh ROOT BUILD LLVM LIBS, the last two LLVM's folder and its libraries.
#
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -eu
root=$1 build=$2 llvm=$3 libs=$4
row=$(grep '^    PASS(single_trip)$' "$root/docs/add-a-pass.md")
list=$(grep '^#define FROM_TARGET ' "$root/docs/add-a-pass.md")
mkdir -p passes bin
sed "s/^#define TCC_PASSES(PASS).*/&\n$row \\\\/" "$root/passes/passes.h" >passes/passes.h
sed "s/^#define FROM_TARGET .*/$list/" "$root/passes/pipeline.c" >passes/pipeline.c
ln -sf "$root/examples" .
for tool in tcc tcc-opt; do
    # shellcheck disable=SC2046 # a list of files
    gcc -std=c17 -D_DEFAULT_SOURCE -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes '-DTCC_PROGRAM_SUFFIX=""' \
        -I. -I"$root" -I"$root/include" single_trip.c passes/pipeline.c $(ls "$root/tools/$tool.c" "$root/tools/$tool"/*.c 2>/dev/null) \
        -L"$build/lib" -ltools_shared -llsp -ldriver -lruntime -linterp -lchecker -lpasses -lcodegen -lfrontend \
        -lir -lsupport -L"$llvm/lib" "$libs" -lstdc++ -lm -lpthread -o "bin/$tool"
done
