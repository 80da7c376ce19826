# tcc_package(KEY SUFFIX): the library and the programs, and all that is installed with them, as the component tcc${SUFFIX}.
# The suffix is behind the names of files, the key behind those of targets; one with a key is installed when it is asked
# for.
#
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
include(CMakePackageConfigHelpers)
include(cmake/install.cmake)
include(cmake/command_lines.cmake)

configure_file(cmake/libtcc.map.in libtcc.map @ONLY)

# What a static libtcc.a needs behind it.
set(private_libs ${llvm_private_libs} -pthread -ldl -lm)

# libtcc.so: all rooms, of which the public functions are seen.
function(tcc_add_library target name)
  get_property(objects GLOBAL PROPERTY TCC_OBJECTS)
  add_library(${target} SHARED ${objects})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} EXPORT_NAME tcc VERSION ${PROJECT_VERSION}
    SOVERSION ${interface_version} LINK_DEPENDS ${PROJECT_BINARY_DIR}/libtcc.map)
  # What LLVM keeps for a process is lost with every unloading, so that the library stays loaded.
  target_link_options(${target} PRIVATE -Wl,--version-script=${PROJECT_BINARY_DIR}/libtcc.map
                      -Wl,-z,nodelete -Wl,--build-id) # which tells what is kept on disk from another build's
  if(TCC_STATIC_LLVM)
    target_sources(${target} PRIVATE cmake/glibc_2_34.c)
  endif()
  target_link_libraries(${target} PRIVATE LLVM::C Threads::Threads ${CMAKE_DL_LIBS} m)
endfunction()

# libtcc.a: all rooms as one object, the same under every name, so that in it, too, nothing but the public functions is seen.
function(tcc_add_static_library target name)
  get_property(objects GLOBAL PROPERTY TCC_OBJECTS)
  set(object ${PROJECT_BINARY_DIR}/libtcc_static.o)
  add_custom_command(OUTPUT ${object}
    COMMAND ${CMAKE_C_COMPILER} "$<$<BOOL:${CMAKE_SYSROOT}>:--sysroot=${CMAKE_SYSROOT}>" -r -nostdlib -o ${object} ${objects}
    COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${object}
    DEPENDS ${objects} COMMAND_EXPAND_LISTS VERBATIM)
  add_library(${target} STATIC ${object})
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME ${name} EXPORT_NAME tcc_static)
  target_link_libraries(${target} INTERFACE ${private_libs})
endfunction()

function(tcc_package key suffix)
  set(name tcc${suffix})
  set(component COMPONENT ${name})
  if(key)
    list(APPEND component EXCLUDE_FROM_ALL)
  endif()
  set(libraries libtcc${key})
  tcc_add_library(libtcc${key} ${name})
  if(TCC_STATIC_LIBRARY)
    tcc_add_static_library(libtcc${key}_static ${name})
    list(APPEND libraries libtcc${key}_static)
  endif()
  # Headers are <tcc/tcc.h> under any name: of a package with a suffix they are in a folder that has its name.
  set(include_dir ${CMAKE_INSTALL_INCLUDEDIR})
  if(suffix)
    string(APPEND include_dir /${name})
  endif()
  foreach(library ${libraries})
    target_include_directories(${library} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                               $<INSTALL_INTERFACE:${include_dir}>)
  endforeach()

  set(programs)
  foreach(source ${tool_sources})
    cmake_path(GET source STEM tool)
    add_executable(${tool}${key} ${source})
    target_compile_definitions(${tool}${key} PRIVATE TCC_PROGRAM_SUFFIX="${suffix}")
    if(TARGET tools_${tool})
      target_link_libraries(${tool}${key} PRIVATE tools_${tool})
    endif()
    target_link_libraries(${tool}${key} PRIVATE tools_shared libtcc${key} Threads::Threads ${CMAKE_DL_LIBS} m)
    list(APPEND programs ${tool}${key})
    install(PROGRAMS $<TARGET_FILE:${tool}${key}> TYPE BIN RENAME ${tool}${suffix} ${component})
  endforeach()

  if(key)
    set_target_properties(${libraries} ${programs} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${name}/bin
      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${name}/${CMAKE_INSTALL_LIBDIR}
      ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${name}/lib)
  endif()
  tcc_install_package()
  tcc_install_command_lines()
endfunction()
