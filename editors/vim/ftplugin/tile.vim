" SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
if exists("b:did_ftplugin")
  finish
endif
let b:did_ftplugin = 1

setlocal commentstring=//\ %s comments=s1:/*,mb:*,ex:*/,:// shiftwidth=4 expandtab
" gg=G lays the program out.
setlocal equalprg=tcc\ fmt\ -
let b:undo_ftplugin = "setlocal commentstring< comments< shiftwidth< expandtab< equalprg<"
