# LLVM::C: LLVM 22 through its C interface. With TCC_STATIC_LLVM the NVPTX and AMDGPU parts of the
# archives, so that libtcc.so needs libc and libm alone and shares neither handlers nor options with
# another LLVM of the process; else the shared library.
#
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# A plain llvm-config may be of another major.
find_program(TCC_LLVM_CONFIG NAMES llvm-config-22 /usr/lib/llvm-22/bin/llvm-config REQUIRED)

function(llvm_config out)
  execute_process(COMMAND ${TCC_LLVM_CONFIG} ${ARGN} OUTPUT_VARIABLE text
                  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

llvm_config(llvm_version --version)
if(NOT llvm_version MATCHES "^22\\.")
  message(FATAL_ERROR "LLVM 22 is needed; ${TCC_LLVM_CONFIG} is of ${llvm_version}")
endif()
llvm_config(llvm_includedir --includedir)
llvm_config(llvm_libdir --libdir)
llvm_config(TCC_LLVM_TOOLS_DIR --bindir)

add_library(llvm_c INTERFACE)
add_library(LLVM::C ALIAS llvm_c)
target_include_directories(llvm_c SYSTEM INTERFACE ${llvm_includedir})
target_link_directories(llvm_c INTERFACE ${llvm_libdir})
if(TCC_STATIC_LLVM)
  if(NOT EXISTS ${TCC_LLVM_TOOLS_DIR}/ld.lld)
    message(FATAL_ERROR "LLVM is linked into libtcc.so by lld-22, which is not in "
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
  target_link_libraries(llvm_c INTERFACE ${llvm_libs}
    -Wl,-Bstatic stdc++ z zstd -Wl,-Bdynamic)
else()
  target_link_libraries(llvm_c INTERFACE LLVM-22 stdc++) # std::set_new_handler
endif()
