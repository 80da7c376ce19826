" Syntax of tile programs: docs/language.md of tcc.
" SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
if exists("b:current_syntax")
  finish
endif

syn keyword tileKeyword kernel schedule const for inout strided sum

" Types and functions are ordinary names elsewhere.
syn match tileType ":\s*\zs\<\(f16\|bf16\|tf32\|f32\|f64\|e4m3\|e5m2\|i8\|u8\|i4\|u4\|i32\)\>"
syn match tileFunction "\<\(min\|max\|argmin\|argmax\|abs\|relu\|where\|exp\|log\|sqrt\|rsqrt\|tanh\|erf\|sigmoid\|silu\|gelu\|gelu_tanh\|f16\|bf16\|tf32\|f32\|f64\|e4m3\|e5m2\|i8\|u8\|i4\|u4\|i32\)\>\ze\s*("

syn match tileNumber "\<\d\+\(\.\d\+\)\?\([eE][+-]\?\d\+\)\?\>"
syn match tileOperator "->\|[<>=!]=\|[-+*<>=]\|/\ze[^/*]"
syn match tileName "\(\<\(kernel\|schedule\)\s\+\)\@<=\h\w*"
syn match tileComment "//.*$" contains=@Spell
syn region tileComment start="/\*" end="\*/" contains=@Spell

" Keys and their words are names outside of schedules.
syn region tileSettings start="\(\<schedule\>\_[^{}]*\)\@<={" end="}" contains=tileComment,tileNumber,tileKey,tileWord
syn keyword tileKey contained tile stages warpgroups consumers operands producer swizzle epilogue staging
syn keyword tileKey contained strips instr warps waves wave group raster cluster cache persistent split separate fuse
syn keyword tileWord contained cooperative pingpong in_order swapped grouped row column hilbert none warp warpgroup interleaved tma words
syn keyword tileWord contained wgmma mma wmma fma naive evict_first evict_last static dynamic

hi def link tileKeyword Keyword
hi def link tileType Type
hi def link tileFunction Function
hi def link tileNumber Number
hi def link tileOperator Operator
hi def link tileName Identifier
hi def link tileComment Comment
hi def link tileKey Label
hi def link tileWord Constant

let b:current_syntax = "tile"
