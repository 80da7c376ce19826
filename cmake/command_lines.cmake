# Manual pages and completions, made of tools/shared/options.def.
#
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
foreach(generator gen-man gen-completions)
  add_executable(${generator} docs/${generator}.c)
  target_link_libraries(${generator} PRIVATE tools_shared)
endforeach()

# tcc_generate(FILE DESTINATION GENERATOR ARGUMENTS...): installs what a generator prints.
set(generated_files)
macro(tcc_generate file destination generator)
  set(path ${PROJECT_BINARY_DIR}/share/${file})
  cmake_path(GET path PARENT_PATH folder)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(OUTPUT ${path} COMMAND ${generator} ${ARGN} "${TCC_PROGRAM_SUFFIX}" > ${path}
                     DEPENDS ${generator} VERBATIM)
  list(APPEND generated_files ${path})
  install(FILES ${path} DESTINATION ${destination})
endmacro()

set(completions ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
foreach(tool tcc tcc-opt tcc-run tcc-bench)
  set(name ${tool}${TCC_PROGRAM_SUFFIX})
  tcc_generate(man/man1/${name}.1 ${CMAKE_INSTALL_MANDIR}/man1 gen-man ${tool})
  tcc_generate(bash-completion/completions/${name} ${completions} gen-completions bash ${tool})
  tcc_generate(zsh/site-functions/_${name} ${CMAKE_INSTALL_DATADIR}/zsh/site-functions gen-completions zsh ${tool})
  tcc_generate(fish/vendor_completions.d/${name}.fish ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
               gen-completions fish ${tool})
endforeach()
foreach(pair "tcc fmt" "tcc lsp" "tcc-run merge")
  string(REPLACE " " "${TCC_PROGRAM_SUFFIX}-" page ${pair})
  tcc_generate(man/man1/${page}.1 ${CMAKE_INSTALL_MANDIR}/man1 gen-man ${pair})
endforeach()
add_custom_target(command_lines ALL DEPENDS ${generated_files})

# Grammars for editors, as they are.
install(DIRECTORY editors/vim/ DESTINATION ${CMAKE_INSTALL_DATADIR}/vim/vimfiles)
install(DIRECTORY editors/vscode DESTINATION ${CMAKE_INSTALL_DATADIR}/tcc)
