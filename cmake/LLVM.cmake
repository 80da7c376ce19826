# LLVM::C: LLVM through its C interface. With TCC_STATIC_LLVM the NVPTX and AMDGPU parts of the archives, so that
# libtcc.so needs libc and libm alone and shares neither handlers nor options with another LLVM of the process; else
# the shared library. `llvm_private_libs` are the flags by which a program links the same behind libtcc.a.
#
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Those that codegen/llvm_major.h knows; the first that is there is taken.
set(llvm_majors 22 23 21 20)

set(TCC_LLVM_MAJOR "" CACHE STRING "LLVM's major version, one of ${llvm_majors}; empty: the first of them that is there")
set(TCC_LLVM_CONFIG "" CACHE FILEPATH "The llvm-config to ask; empty: the one of TCC_LLVM_MAJOR")

function(llvm_config out)
  execute_process(COMMAND ${TCC_LLVM_CONFIG} ${ARGN} OUTPUT_VARIABLE text
                  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

# A plain llvm-config may be of any major.
if(NOT TCC_LLVM_CONFIG)
  set(names)
  foreach(major ${TCC_LLVM_MAJOR} ${llvm_majors})
    list(APPEND names llvm-config-${major} /usr/lib/llvm-${major}/bin/llvm-config)
    if(TCC_LLVM_MAJOR)
      break()
    endif()
  endforeach()
  find_program(found_llvm_config NAMES ${names} llvm-config NO_CACHE)
  if(NOT found_llvm_config)
    message(FATAL_ERROR "no llvm-config; tcc needs LLVM ${llvm_majors}, whichever is there (Debian: llvm-22-dev)")
  endif()
  set(TCC_LLVM_CONFIG ${found_llvm_config})
endif()
llvm_config(llvm_version --version)
string(REGEX REPLACE "\\..*" "" llvm_major ${llvm_version})
if(TCC_LLVM_MAJOR AND NOT llvm_major STREQUAL TCC_LLVM_MAJOR)
  message(FATAL_ERROR "LLVM ${TCC_LLVM_MAJOR} was asked for; ${TCC_LLVM_CONFIG} is of ${llvm_version}")
elseif(NOT llvm_major IN_LIST llvm_majors)
  list(JOIN llvm_majors " or " list)
  message(FATAL_ERROR "tcc needs LLVM ${list}; ${TCC_LLVM_CONFIG} is of ${llvm_version}")
endif()
message(STATUS "LLVM ${llvm_version}")
llvm_config(llvm_includedir --includedir)
llvm_config(llvm_libdir --libdir)
llvm_config(TCC_LLVM_TOOLS_DIR --bindir)
llvm_config(llvm_shared_libs --link-shared --libs) # of which the tests link programs, too

# In a cross build llvm-config and lld are this machine's, headers and libraries the other's, of the same version.
add_library(llvm_c INTERFACE)
add_library(LLVM::C ALIAS llvm_c)
target_include_directories(llvm_c SYSTEM INTERFACE ${CMAKE_SYSROOT}${llvm_includedir})
target_compile_definitions(llvm_c INTERFACE TCC_LLVM_MAJOR=${llvm_major})
target_link_directories(llvm_c INTERFACE ${CMAKE_SYSROOT}${llvm_libdir})
if(NOT EXISTS ${CMAKE_SYSROOT}${llvm_includedir}/llvm-c/Core.h)
  message(FATAL_ERROR "no headers of LLVM in ${CMAKE_SYSROOT}${llvm_includedir}")
endif()
if(TCC_STATIC_LLVM)
  if(NOT EXISTS ${TCC_LLVM_TOOLS_DIR}/ld.lld)
    message(FATAL_ERROR "LLVM is linked into libtcc.so by lld-${llvm_major}, which is not in "
            "${TCC_LLVM_TOOLS_DIR}; -DTCC_STATIC_LLVM=OFF takes the shared library")
  endif()
  llvm_config(llvm_libs --link-static --libs nvptx amdgpu passes)
  separate_arguments(llvm_libs)
  target_link_options(llvm_c INTERFACE -fuse-ld=lld -B${TCC_LLVM_TOOLS_DIR} -static-libgcc
    -Wl,--gc-sections,--icf=all,--exclude-libs,ALL,--strip-all)
  # Both backends are in, whichever the code asks for.
  foreach(part TargetInfo Target TargetMC AsmPrinter AsmParser)
    target_link_options(llvm_c INTERFACE -Wl,--undefined=LLVMInitializeAMDGPU${part})
  endforeach()
  target_link_libraries(llvm_c INTERFACE ${llvm_libs} -Wl,-Bstatic stdc++ z zstd -Wl,-Bdynamic)
  set(llvm_private_libs -L${llvm_libdir} ${llvm_libs} -lstdc++ -lz -lzstd)
else()
  set(llvm_libs ${llvm_shared_libs})
  target_link_libraries(llvm_c INTERFACE ${llvm_libs} stdc++) # std::set_new_handler
  if(NOT llvm_libdir MATCHES "^/usr/lib") # where the loader does not look by itself
    target_link_options(llvm_c INTERFACE -Wl,-rpath,${llvm_libdir})
  endif()
  set(llvm_private_libs -L${llvm_libdir} ${llvm_libs} -lstdc++)
endif()
