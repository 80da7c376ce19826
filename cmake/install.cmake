# What `cmake --install` and the dist archive hold. Everything finds its neighbours relative to
# itself, so that the tree may be moved.
#
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Of tcc_package, with its variables.
macro(tcc_install_package)
  set(cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/${name})
  set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  set(made ${PROJECT_BINARY_DIR}/packages/${name})
  install(TARGETS ${libraries} EXPORT ${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ${component}
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} ${component})
  install(DIRECTORY include/tcc DESTINATION ${include_dir} ${component} FILES_MATCHING PATTERN *.h)
  install(EXPORT ${name} NAMESPACE ${name}:: FILE ${name}-targets.cmake DESTINATION ${cmake_dir}
          ${component})
  file(RELATIVE_PATH cmake_dir_to_bin /${cmake_dir} /${CMAKE_INSTALL_BINDIR})
  file(RELATIVE_PATH pc_to_prefix /${pkgconfig_dir} /)
  list(JOIN private_libs " " pc_private_libs)
  configure_file(cmake/tcc-config.cmake.in ${made}/${name}-config.cmake @ONLY)
  configure_file(cmake/tcc.pc.in ${made}/${name}.pc @ONLY)
  write_basic_package_version_file(${made}/${name}-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${made}/${name}-config.cmake ${made}/${name}-config-version.cmake DESTINATION ${cmake_dir}
          ${component})
  install(FILES ${made}/${name}.pc DESTINATION ${pkgconfig_dir} ${component})

  set(doc_dir ${CMAKE_INSTALL_DATAROOTDIR}/doc/${name})
  install(FILES LICENSE DESTINATION ${doc_dir} ${component})
  install(FILES ${licences_inside} DESTINATION ${doc_dir}/licenses ${component})

  # Grammars for editors, as they are.
  install(DIRECTORY editors/vim/ DESTINATION ${CMAKE_INSTALL_DATADIR}/vim/vimfiles ${component})
  install(DIRECTORY editors/vscode DESTINATION ${CMAKE_INSTALL_DATADIR}/${name} ${component})
endmacro()

# A libtcc.so with LLVM inside brings along the licences of all that it holds, as Debian has them, and the texts that
# these refer to.
set(licences_inside)
if(TCC_STATIC_LLVM)
  foreach(package llvm-${llvm_major}-dev libstdc++-*-dev zlib1g-dev libzstd-dev)
    file(GLOB found ${CMAKE_SYSROOT}/usr/share/doc/${package}/copyright)
    if(NOT found)
      message(WARNING "no licence of ${package}, which libtcc.so has inside: what is installed lacks it")
    endif()
    foreach(path ${found})
      string(REGEX REPLACE ".*/([^/]+)/copyright$" "\\1" package ${path})
      configure_file(${path} ${PROJECT_BINARY_DIR}/licenses/${package} COPYONLY)
      list(APPEND licences_inside ${PROJECT_BINARY_DIR}/licenses/${package})
    endforeach()
  endforeach()
  foreach(text Apache-2.0 GPL-3)
    if(EXISTS /usr/share/common-licenses/${text})
      list(APPEND licences_inside /usr/share/common-licenses/${text})
    endif()
  endforeach()
endif()
