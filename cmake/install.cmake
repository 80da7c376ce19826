# What `cmake --install` and the dist archive hold. Everything finds its neighbours relative to
# itself, so that the tree may be moved.
#
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
include(CMakePackageConfigHelpers)

set(cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tcc)
install(TARGETS libtcc EXPORT tcc LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/tcc TYPE INCLUDE FILES_MATCHING PATTERN *.h)
install(FILES LICENSE TYPE DOC)
install(EXPORT tcc NAMESPACE tcc:: FILE tcc-targets.cmake DESTINATION ${cmake_dir})
file(RELATIVE_PATH cmake_dir_to_bin /${cmake_dir} /${CMAKE_INSTALL_BINDIR})
configure_file(cmake/tcc-config.cmake.in tcc-config.cmake @ONLY)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tcc-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tcc-config.cmake ${PROJECT_BINARY_DIR}/tcc-config-version.cmake
        DESTINATION ${cmake_dir})

file(RELATIVE_PATH pc_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/tcc.pc.in tcc.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tcc.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# A libtcc.so with LLVM inside brings along the licences of all that it holds.
if(TCC_STATIC_LLVM)
  foreach(package llvm-22-dev libstdc++-12-dev zlib1g-dev libzstd-dev)
    install(FILES /usr/share/doc/${package}/copyright DESTINATION
            ${CMAKE_INSTALL_DOCDIR}/licenses RENAME ${package})
  endforeach()
endif()
