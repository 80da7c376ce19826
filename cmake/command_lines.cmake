# Manual pages and completions, made of tools/shared/options.def.
#
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
foreach(generator gen-man gen-completions)
  add_executable(${generator} docs/${generator}.c)
  target_link_libraries(${generator} PRIVATE tools_shared libtcc)
endforeach()

# tcc_generate(FILE DESTINATION GENERATOR ARGUMENTS...): installs what a generator prints.
macro(tcc_generate file destination generator)
  set(path ${PROJECT_BINARY_DIR}/packages/${name}/${file})
  cmake_path(GET path PARENT_PATH folder)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(OUTPUT ${path} COMMAND ${generator} ${ARGN} "${suffix}" > ${path}
                     DEPENDS ${generator} VERBATIM)
  list(APPEND generated ${path})
  install(FILES ${path} DESTINATION ${destination} ${component})
endmacro()

# Of tcc_package, with its variables.
macro(tcc_install_command_lines)
  set(generated)
  foreach(tool tcc tcc-opt tcc-run tcc-bench)
    tcc_generate(man/${tool}${suffix}.1 ${CMAKE_INSTALL_MANDIR}/man1 gen-man ${tool})
    tcc_generate(bash/${tool}${suffix} ${CMAKE_INSTALL_DATADIR}/bash-completion/completions gen-completions bash ${tool})
    tcc_generate(zsh/_${tool}${suffix} ${CMAKE_INSTALL_DATADIR}/zsh/site-functions gen-completions zsh ${tool})
    tcc_generate(fish/${tool}${suffix}.fish ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
                 gen-completions fish ${tool})
  endforeach()
  foreach(pair "tcc fmt" "tcc lsp" "tcc-run merge")
    string(REPLACE " " "${suffix}-" page ${pair})
    tcc_generate(man/${page}.1 ${CMAKE_INSTALL_MANDIR}/man1 gen-man ${pair})
  endforeach()
  add_custom_target(command_lines${key} ALL DEPENDS ${generated})
endmacro()
